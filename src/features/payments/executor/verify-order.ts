import { z } from 'zod'
import type { PaymentRequest } from '../ledger/orders.ts'
import type { MandatedPayment } from '../mandates/model.ts'
import type { Verification } from '../mandates/tokens/chain.ts'
import { hashText, isObject } from '../mandates/tokens/encoding.ts'
import { toMandatedPayment } from '../mandates/v2/payment.ts'
import { paymentConstraintSchemas, type Spent } from '../mandates/v2/types.ts'
import { verifyPaymentV1 } from '../mandates/verify/carts.ts'
import {
  checkPaymentFacts,
  type VerifiedPayment,
  verifyCheckoutChain,
  verifyPaymentChain,
} from '../mandates/verify/chains.ts'
import { checkAllowedIssuers, checkPayee } from '../mandates/verify/payee.ts'
import { hasPlaceholder } from '../mandates/verify/placeholders.ts'
import {
  createViolation,
  type MandateErrorCode,
  toMandateErrorCode,
  type Violation,
} from '../mandates/violations.ts'
import { agentRouteSchema } from '../ports/agent-route.ts'
import { createSigners, findCartMerchant, findMerchant, type MerchantKey } from '../trust/signers.ts'
import type { Trust } from '../trust/trust.ts'

/** Why an order is refused: the protocol's code, and all reasons. */
export type Refusal = { code: MandateErrorCode; violations: Violation[] }

/** One check that was made, for the trail: `key` is the thumbprint of the key that signed. */
export type Check = { check: string; key?: string; value?: string }

/** A token that was verified, as it was received. `identity` is the signer's key and the hash of what it signed. */
export type VerifiedToken = { kind: 'payment' | 'cart' | 'checkout'; raw: string; identity: string }

/** An order whose mandates hold, but for what was spent under them: `checkSpent` decides that, under the lock of `spend`. */
export type VerifiedOrder = {
  payment: MandatedPayment
  /** The issuer of the merchant's trusted key. */
  payee_issuer: string
  /** The id of the checkout or of the payment request, whichever version it is of. */
  checkout_id: string
  /** The id of the cart or checkout, whichever version it is of. */
  cart_id: string
  tokens: VerifiedToken[]
  /** Null: no limit. */
  spend: { id: string; max_minor: number | null; max_uses: number | null }
  checkSpent(spent: Spent): Violation[]
  checks: Check[]
  /** What the demo profile did not check, by the names of `checks`. */
  skipped: string[]
}

const text = z.string().min(1)
const common = {
  route: agentRouteSchema.optional(),
  provider_id: text,
  nonce: text,
  capture: z.boolean().default(true),
}
/** What a worker wrote, which proves nothing. */
const requestSchema = z.discriminatedUnion('version', [
  z.looseObject({ version: z.literal('0.1'), payment: text, cart: text, ...common }),
  z.looseObject({
    version: z.literal('0.2'),
    payment: text,
    checkout: text,
    checkout_audience: text.optional(),
    checkout_nonce: text.optional(),
    ...common,
  }),
])

/** The request of an order, or null where it has none. */
export const parsePaymentRequest = (value: unknown): (PaymentRequest & { capture: boolean }) | null => {
  const parsed = requestSchema.safeParse(value)
  return parsed.success ? (parsed.data as PaymentRequest & { capture: boolean }) : null
}

/** The refusal for violations. */
export const toRefusal = (violations: Violation[]): Refusal => ({
  code: toMandateErrorCode(violations) ?? 'invalid_mandate',
  violations,
})

/** What verifies orders of all businesses: it asks for trust each time. */
export const createOrderVerifier = (trust: Trust, audience: string) => {
  const { importKey, withTrust } = createSigners(trust)
  return {
    /**
     * Verifies an order from its raw bytes: every signature by a key that the business trusts, hashes, audience, nonce and times, the
     * constraints but for what was spent, an end of every mandate, and that the payee is who signed the cart or checkout.
     */
    async verify(
      tenant: string,
      request: PaymentRequest,
      now: number,
    ): Promise<{ ok: true; value: VerifiedOrder } | { ok: false; refusal: Refusal }> {
      const isDemo = hasPlaceholder(request) && (await trust.acceptsPlaceholders(tenant))
      const result = await withTrust(tenant, (findKeys, merchants) => {
        const known = {
          findKeys,
          importKey,
          now,
          audience,
          nonce: request.nonce,
          ...(isDemo && { skipped: [] }),
        }
        return request.version === '0.1'
          ? verifyV1(request, known, merchants)
          : verifyV2(request, known, merchants)
      })
      return 'violations' in result
        ? { ok: false, refusal: toRefusal(result.violations) }
        : { ok: true, value: result }
    },
  }
}

/** The thumbprint of the key in an identity. */
const toThumbprint = (identity: string): string => identity.split('.')[0] ?? ''

const verifyV1 = (
  request: Extract<PaymentRequest, { version: '0.1' }>,
  known: Verification,
  merchants: readonly MerchantKey[],
): VerifiedOrder | { violations: Violation[] } => {
  const verdict = verifyPaymentV1(request.payment, request.cart, known)
  if (!verdict.ok) return verdict
  const { payment, identity } = verdict.value
  const merchant = findCartMerchant(request.cart, merchants)
  const { skipped = [] } = known
  if (!merchant || payment.expiresAt === null)
    return { violations: [createViolation('payee_not_bound', 'cart', 'is signed by no trusted merchant')] }
  return {
    // the name in a cart is what its signer wrote: the trusted issuer says who is paid
    payment: { ...payment, payee: { ...payment.payee, id: merchant.issuer } },
    payee_issuer: merchant.issuer,
    checkout_id: payment.checkout.id,
    cart_id: payment.checkout.cart_id,
    tokens: [
      { kind: 'payment', raw: request.payment, identity },
      { kind: 'cart', raw: request.cart, identity: merchant.identity },
    ],
    spend: { id: identity, max_minor: payment.amount.minor, max_uses: 1 },
    checkSpent: ({ uses }) => (uses === 0 ? [] : [usedViolation()]),
    checks: [
      { check: 'signature of the user over cart and payment', key: toThumbprint(identity) },
      { check: 'signature of the merchant over the cart', key: toThumbprint(merchant.identity) },
      { check: 'merchant is the payee', value: merchant.issuer },
      { check: 'audience and nonce', value: known.audience },
      { check: 'not expired', value: new Date(payment.expiresAt * 1000).toISOString() },
    ].filter(({ check }) => !skipped.includes(check)),
    skipped,
  }
}

/** The violation of a mandate that has paid, or is paying. */
export const usedViolation = (): Violation =>
  createViolation('mandate_used', 'mandate', 'was used before: have the person sign a new one')

/** Every mandate needs an end, in its content or its token. */
const checkEnds = ({ hops }: Pick<VerifiedPayment, 'hops'>, chain: string): Violation[] =>
  hops
    .filter(({ content }) => typeof content.vct === 'string' && content.vct.startsWith('mandate.'))
    .filter(({ content, claims }) => (content.exp ?? claims.exp) === undefined)
    .map(({ sdJwt }) =>
      createViolation('missing_exp', `${chain}.${sdJwt.jws.field}.exp`, 'is missing: a mandate needs an end'),
    )

const verifyV2 = (
  request: Extract<PaymentRequest, { version: '0.2' }>,
  known: Verification,
  merchants: readonly MerchantKey[],
): VerifiedOrder | { violations: Violation[] } => {
  const { checkout_audience = known.audience, checkout_nonce = known.nonce } = request
  const checkout = verifyCheckoutChain(request.checkout, {
    ...known,
    audience: checkout_audience,
    nonce: checkout_nonce,
  })
  const transactionId = checkout.ok ? checkout.value.closed.checkout_hash : undefined
  const openCheckoutHash = checkout.ok ? checkout.value.openCheckoutHash : undefined
  const facts = { transactionId, openCheckoutHash }
  const unspent = { amount_minor: 0, uses: 0 }
  const payment = verifyPaymentChain(request.payment, known, { ...facts, spent: unspent })
  if (!checkout.ok || !payment.ok) {
    const ofCheckout = checkout.violations.map((one) => ({ ...one, field: `checkout.${one.field}` }))
    return { violations: [...payment.violations, ...ofCheckout] }
  }
  const merchant = findMerchant(checkout.value.closed.checkout_jwt, merchants)
  if (!merchant)
    return {
      violations: [createViolation('payee_not_bound', 'checkout', 'is signed by no trusted merchant')],
    }
  const mandated = toMandatedPayment(payment.value.closed)
  const violations = [
    ...checkEnds(payment.value, 'payment'),
    ...checkEnds(checkout.value, 'checkout'),
    ...checkPayee(checkout.value.checkout, payment.value.closed, merchant.issuer),
    ...checkAllowedIssuers('payment', payment.value.hops, merchant.issuer),
    ...checkAllowedIssuers('checkout', checkout.value.hops, merchant.issuer),
  ]
  if (violations.length > 0) return { violations }
  const checkoutId = checkout.value.checkout.id ?? mandated.checkout.id
  const root = payment.value.hops.find(({ content }) => content.vct === 'mandate.payment.open.1')
  const hops = [
    ...payment.value.hops.map((hop) => ['payment', hop] as const),
    ...checkout.value.hops.map((hop) => ['checkout', hop] as const),
  ]
  return {
    // the id in a mandate is what a checkout or an agent wrote: the trusted issuer says who is paid
    payment: { ...mandated, payee: { ...mandated.payee, id: merchant.issuer } },
    payee_issuer: merchant.issuer,
    checkout_id: checkoutId,
    cart_id: checkoutId,
    tokens: [
      { kind: 'payment', raw: request.payment, identity: payment.value.identity },
      { kind: 'checkout', raw: request.checkout, identity: checkout.value.identity },
    ],
    spend: root
      ? { id: root.identity, ...readLimits(root.content.constraints) }
      : { id: payment.value.identity, max_minor: mandated.amount.minor, max_uses: 1 },
    checkSpent: (spent) =>
      root
        ? checkPaymentFacts(payment.value, { openCheckoutHash, spent, now: known.now })
        : spent.uses === 0
          ? []
          : [usedViolation()],
    checks: [
      ...hops.map(([chain, hop]) => ({
        check: `signature of ${chain} ${hop.sdJwt.jws.field}, ${String(hop.content.vct)}`,
        key: toThumbprint(hop.identity),
      })),
      { check: 'signature of the merchant over the checkout', key: toThumbprint(merchant.identity) },
      { check: 'hash of the checkout', value: hashText(checkout.value.closed.checkout_jwt) },
      { check: 'merchant is the payee', value: merchant.issuer },
      { check: 'audience and nonce', value: known.audience },
      { check: 'not expired' },
      { check: 'constraints' },
    ],
    skipped: [],
  }
}

/** What an open mandate allows in all: the database checks it once more. Without budget and recurrence it pays once. */
const readLimits = (constraints: unknown): { max_minor: number | null; max_uses: number | null } => {
  const listed = (Array.isArray(constraints) ? constraints : []).filter(isObject)
  const budgets = listed
    .filter(({ type }) => type === 'payment.budget')
    .map((one) => paymentConstraintSchemas['payment.budget'].parse(one).max)
  const uses = listed
    .filter(({ type }) => type === 'payment.agent_recurrence')
    .map((one) => paymentConstraintSchemas['payment.agent_recurrence'].parse(one).max_occurrences)
    .filter((most) => most != null)
  const isReused = listed.some(({ type }) => type === 'payment.budget' || type === 'payment.agent_recurrence')
  return {
    max_minor: budgets.length > 0 ? Math.min(...budgets) : null,
    max_uses: isReused ? (uses.length > 0 ? Math.min(...uses) : null) : 1,
  }
}
