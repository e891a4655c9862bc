import { randomBytes } from 'node:crypto'
import { authorizeCart } from '../../examples/purchase/authorize-cart.ts'
import type { ExecutorServices } from '../../src/features/payments/executor/executor-services.ts'
import { authorizePayment } from '../../src/features/payments/mandates/tokens/authorizations.ts'
import { hashText, type JsonObject } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { appendMandate, conceal, issueMandate } from '../../src/features/payments/mandates/tokens/issue.ts'
import { signJws } from '../../src/features/payments/mandates/tokens/jws.ts'
import { issueCredential } from '../../src/features/payments/mandates/tokens/key-binding.ts'
import type { SigningKey } from '../../src/features/payments/mandates/tokens/keys.ts'
import type { PaymentProvider } from '../../src/features/payments/providers/provider.ts'
import { createTrust } from '../../src/features/payments/trust/trust.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { MasonError } from '../../src/state/errors.ts'
import {
  checkout,
  closedPayment,
  createParty,
  hop,
  issueCheckoutChain,
  mandateTime,
  openPayment,
  parties,
} from './mandate-parties.ts'

const { merchant, surface, agent } = parties
const unique = (prefix: string): string => `${prefix}-${randomBytes(5).toString('hex')}`
const issuer = 'https://demo-merchant.example'

/** Whom the mandates below are for. */
const audience = 'merchant'

/** Adds a business that trusts the surface and the merchant of the mandates below. */
export const addBuyer = async (database: Database, tenant: string): Promise<void> => {
  await database.query('INSERT INTO businesses (tenant) VALUES ($1)', [tenant])
  await trustKey(database, tenant, surface, 'trusted-surface', 'https://surface.example')
  await trustKey(database, tenant, merchant, 'merchant', issuer)
}

/** Lets a business trust the key of a party. */
export const trustKey = async (
  database: Database,
  tenant: string,
  { jwk }: Pick<ReturnType<typeof createParty>, 'jwk'>,
  role: string,
  name: string,
): Promise<void> =>
  void (await database.query(
    `INSERT INTO trusted_keys (key_id, tenant, issuer, kid, roles, x, y) VALUES ($1, $2, $3, $4, ARRAY[$5], $6, $7)`,
    [unique('trk'), tenant, name, jwk.kid, role, jwk.x, jwk.y],
  ))

type Purchase = {
  nonce: string
  checkoutId?: string
  /** The own id of a cart of AP2 0.1. */
  cartId?: string
  amount?: number
  /** Of an open mandate, beside the reference; null: the person signs the payment itself. */
  constraints?: JsonObject[] | null
  /** Changes the closed payment mandate. */
  closed?: JsonObject
  /** Changes the claims of the checkout that the merchant signs. */
  checkout?: JsonObject
  /** Changes the open checkout mandate. */
  openCheckout?: JsonObject
  /** Who signs the checkout. */
  seller?: SigningKey
  /** An open payment mandate of an earlier purchase, and its open checkout. */
  open?: { payment: string; checkout: string }
}

const times = { iat: mandateTime - 60, exp: mandateTime + 3600 }

/** A purchase in AP2 0.2: an open mandate, or a person who signs at once. */
export const buyV2 = async ({
  nonce,
  checkoutId = unique('order'),
  amount = 19_900,
  constraints = [{ type: 'payment.amount_range', currency: 'USD', max: 20_000 }],
  closed = {},
  checkout: changes = {},
  openCheckout: limits = {},
  seller = merchant.signing,
  open,
}: Purchase) => {
  const claims = { ...checkout, id: checkoutId, totals: [{ type: 'total', amount }], ...changes }
  const jwt = await signJws(claims, seller, { typ: 'JWT' })
  const made = await issueCheckoutChain({}, jwt, limits)
  const openCheckout = open?.checkout ?? made.open
  const checkoutChain = open
    ? await appendMandate(
        open.checkout,
        { vct: 'mandate.checkout.1', checkout_jwt: conceal(jwt), checkout_hash: made.hash, ...times },
        agent.signing,
        hop,
      )
    : made.chain
  const content = closedPayment({
    transaction_id: made.hash,
    payment_amount: { amount, currency: 'USD' },
    ...closed,
  })
  const reference = { type: 'payment.reference', conditional_transaction_id: hashText(openCheckout) }
  const binding = { ...hop, nonce }
  let root = ''
  let payment: string
  if (constraints === null)
    payment = await issueMandate(content, surface.signing, { iat: hop.iat, aud: audience, nonce })
  else {
    root =
      open?.payment ??
      (await issueMandate(
        openPayment(agent.jwk, { constraints: [...constraints, reference] }),
        surface.signing,
      ))
    payment = await appendMandate(root, content, agent.signing, binding)
  }
  const request = {
    ...{ version: '0.2' as const, payment, checkout: checkoutChain, checkout_nonce: hop.nonce },
    ...{ provider_id: 'card', nonce },
  }
  return { request, open: { payment: root, checkout: openCheckout }, checkoutId }
}

/** A purchase in AP2 0.1: a cart of the merchant that a person pays. */
export const buyV1 = async ({
  nonce,
  checkoutId = unique('order'),
  cartId = `cart of ${checkoutId}`,
  amount = 19_900,
  confirmation = true,
}: Pick<Purchase, 'nonce' | 'checkoutId' | 'cartId' | 'amount'> & { confirmation?: boolean }) => {
  const value = amount / 100
  const total = { label: 'Total', amount: { currency: 'USD', value } }
  const contents = {
    id: cartId,
    user_cart_confirmation_required: confirmation,
    payment_request: {
      method_data: [{ supported_methods: 'CARD' }],
      details: { id: checkoutId, display_items: [total], total },
    },
    cart_expiry: new Date((mandateTime + 3600) * 1000).toISOString(),
    merchant_name: 'Demo Merchant',
  }
  const claims = { issuer, subject: 'shop', audience, iat: mandateTime - 60, jti: unique('jti') }
  const cart = { contents, merchant_authorization: await authorizeCart(contents, claims, merchant.signing) }
  const paymentContents = {
    payment_mandate_id: unique('pm'),
    payment_details_id: checkoutId,
    payment_details_total: total,
    payment_response: { request_id: checkoutId, method_name: 'CARD' },
    merchant_agent: 'Demo Merchant',
  }
  const credential = await issueCredential({ vct: 'com.example.card' }, agent.jwk, surface.signing)
  const binding = { audience, nonce, iat: hop.iat }
  const user_authorization = await authorizePayment(cart, paymentContents, credential, agent.signing, binding)
  return {
    request: {
      version: '0.1' as const,
      payment: JSON.stringify({ payment_mandate_contents: paymentContents, user_authorization }),
      cart: JSON.stringify(cart),
      ...{ provider_id: 'card', nonce },
    },
    checkoutId,
  }
}

const receiptKey = createParty('executor-1')

/** What an executor works with: the provider in this process, and the time of the mandates. */
export const createExecutorServices = (
  database: Database,
  trustDatabase: Database,
  provider: PaymentProvider,
  changes: Partial<ExecutorServices> = {},
): ExecutorServices => ({
  database,
  trust: createTrust(trustDatabase),
  openProvider: async (id) => {
    if (id === 'card') return provider
    throw new MasonError('not_found', 'there is no such provider')
  },
  unseal: async (sealed) => sealed.replace(/^sealed /, ''),
  signer: { issuer: 'https://mason.example', signingKey: async () => receiptKey.signing },
  audience,
  mandateTime: () => new Date(mandateTime * 1000),
  clock: { ...systemClock, now: () => new Date(mandateTime * 1000) },
  log: silentLog,
  ...changes,
})
