import { generateKeyPairSync } from 'node:crypto'
import { hashText, type JsonObject } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { appendMandate, conceal, issueMandate } from '../../src/features/payments/mandates/tokens/issue.ts'
import { signJws } from '../../src/features/payments/mandates/tokens/jws.ts'
import {
  createKeyImporter,
  type SigningKey,
  trustForEveryRole,
} from '../../src/features/payments/mandates/tokens/keys.ts'

/** The time of the encoded tokens in AP2's documents. */
export const mandateTime = 1_777_342_400

/** A key pair on P-256: to sign with, and the JWK that others have. */
export const createParty = (kid?: string): { signing: SigningKey; jwk: JsonObject } => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = kid === undefined ? {} : { kid }
  return { signing: { key: privateKey, ...name }, jwk: { ...publicKey.export({ format: 'jwk' }), ...name } }
}

/** Those who sign: the surface of a user, two agents, a merchant and a payment processor. Keys of agents are in mandates alone. */
export const parties = {
  surface: createParty('surface-1'),
  agent: createParty(),
  helper: createParty(),
  merchant: createParty('merchant-1'),
  processor: createParty('processor-1'),
}
export const trustedJwks = [parties.surface.jwk, parties.merchant.jwk, parties.processor.jwk]
export const importKey = createKeyImporter()

/** What a verifier expects of the chains below. */
export const expected = {
  importKey,
  findKeys: trustForEveryRole(trustedJwks, importKey),
  now: mandateTime,
  audience: 'merchant',
  nonce: 'nonce-1',
}

export const shop = { id: 'merchant_1', name: 'Demo Merchant', website: 'https://demo-merchant.example' }
const times = { iat: mandateTime - 60, exp: mandateTime + 3600 }

export const openPayment = (jwk: JsonObject, changes: JsonObject = {}): JsonObject => ({
  vct: 'mandate.payment.open.1',
  constraints: [
    { type: 'payment.amount_range', currency: 'USD', max: 20000, min: 0 },
    {
      type: 'payment.allowed_payees',
      allowed: [conceal(shop), conceal({ id: 'merchant_2', name: 'Another' })],
    },
    { type: 'payment.reference', conditional_transaction_id: 'open-checkout' },
  ],
  cnf: { jwk },
  ...times,
  ...changes,
})
export const closedPayment = (changes: JsonObject = {}): JsonObject => ({
  vct: 'mandate.payment.1',
  transaction_id: 'checkout-1',
  payee: shop,
  payment_amount: { amount: 19900, currency: 'USD' },
  payment_instrument: { id: 'card-1', type: 'card', description: 'Card ••••4242' },
  ...times,
  ...changes,
})
/** For whom a hop is, unless a test says otherwise. */
export const hop = { audience: 'merchant', nonce: 'nonce-1', iat: mandateTime - 30 }

/** Surface -> agent: an open and a closed payment mandate. */
export const issuePaymentChain = async (changes: JsonObject = {}): Promise<string> => {
  const root = await issueMandate(openPayment(parties.agent.jwk), parties.surface.signing)
  return appendMandate(root, closedPayment(changes), parties.agent.signing, hop)
}

/** Surface -> agent -> helper: three hops. */
export const issueThreeHops = async (): Promise<string> => {
  const root = await issueMandate(openPayment(parties.agent.jwk), parties.surface.signing)
  const second = await appendMandate(root, openPayment(parties.helper.jwk), parties.agent.signing, hop)
  return appendMandate(second, closedPayment(), parties.helper.signing, hop)
}

export const checkout = {
  id: 'order-1',
  merchant: shop,
  currency: 'USD',
  line_items: [{ id: 'li_0', item: { id: 'shoe', title: 'Shoe', price: 19900 }, quantity: 1 }],
  totals: [{ type: 'total', amount: 19900 }],
}
/** What an open checkout mandate says of items. */
export const lineItems = {
  type: 'checkout.line_items',
  items: [{ id: 'line_1', acceptable_items: [conceal({ id: 'shoe', title: 'Shoe' })], quantity: 1 }],
}
const openCheckout = (jwk: JsonObject, changes: JsonObject = {}): JsonObject => ({
  vct: 'mandate.checkout.open.1',
  constraints: [lineItems, { type: 'checkout.allowed_merchants', allowed: [conceal(shop)] }],
  cnf: { jwk },
  ...times,
  ...changes,
})

/** An open and a closed checkout mandate over a checkout that the merchant signed. */
export const issueCheckoutChain = async (
  changes: JsonObject = {},
  checkoutJwt?: string,
  openChanges: JsonObject = {},
): Promise<{ chain: string; open: string; jwt: string; hash: string }> => {
  const open = await issueMandate(openCheckout(parties.agent.jwk, openChanges), parties.surface.signing)
  const jwt = checkoutJwt ?? (await signJws(checkout, parties.merchant.signing, { typ: 'JWT' }))
  const hash = hashText(jwt)
  const closed = {
    vct: 'mandate.checkout.1',
    checkout_jwt: conceal(jwt),
    checkout_hash: hash,
    ...times,
    ...changes,
  }
  return { chain: await appendMandate(open, closed, parties.agent.signing, hop), open, jwt, hash }
}

/** The other signature of ES256 over the same text: (r, n-s). */
export const mirrorSignature = (jws: string): string => {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const [head, body, signature = ''] = jws.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
  const mirrored = Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex'),
  ])
  return [head, body, mirrored.toString('base64url')].join('.')
}

/** Edits the JWT of the last hop, or of hop `at`, without signing it again. */
export const editHop = (chain: string, at: number, edit: (jwt: string) => string): string =>
  chain
    .split('~~')
    .map((text, i, hops) => {
      if (i !== (at + hops.length) % hops.length) return text
      const [jwt = '', ...rest] = text.split('~')
      return [edit(jwt), ...rest].join('~')
    })
    .join('~~')
