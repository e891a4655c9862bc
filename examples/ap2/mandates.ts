import { ap2Keys as keys } from '../../src/features/ap2-wire.ts'
import type { MandatedPayment } from '../../src/features/payments/mandates/model.ts'
import { hashJson } from '../../src/features/payments/mandates/tokens/authorizations.ts'
import { parseChain, readContent } from '../../src/features/payments/mandates/tokens/chain.ts'
import { hashText, isObject, type JsonObject } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { parseKeyBound } from '../../src/features/payments/mandates/tokens/key-binding.ts'
import { createKeyImporter } from '../../src/features/payments/mandates/tokens/keys.ts'
import { discloseClaims, type SdJwt } from '../../src/features/payments/mandates/tokens/sd-jwt.ts'
import { attempt } from '../../src/features/payments/mandates/tokens/token-error.ts'
import { paymentMandateV1Schema } from '../../src/features/payments/mandates/v1/types.ts'
import { toMandatedPayment } from '../../src/features/payments/mandates/v2/payment.ts'
import type { CheckoutReceipt } from '../../src/features/payments/mandates/v2/types.ts'
import { verifyPaymentV1 } from '../../src/features/payments/mandates/verify/carts.ts'
import {
  verifyCheckoutChain,
  verifyPaymentChain,
} from '../../src/features/payments/mandates/verify/chains.ts'
import { toUserPlaceholder } from '../../src/features/payments/mandates/verify/placeholders.ts'
import { signReceipt, toReferences } from '../../src/features/payments/mandates/verify/receipts.ts'
import { readBy, type Violation } from '../../src/features/payments/mandates/violations.ts'
import type { Books } from './books.ts'
import type { Self } from './config.ts'
import { fail, type Incoming, type Part, refuse } from './messages.ts'

/**
 * A payment mandate, as a message has it, before anything is verified. `id` is that of AP2 0.1, or made of what the last signature of a
 * chain covers, `hash` of all that it says, `text` as it was received, `method` how it pays. `checkout` is the order of AP2 0.1 that it
 * pays, or the hash of the checkout, `root` the open mandate that it closes.
 */
export type Mandate = { version: '0.1' | '0.2'; token: string | undefined; root: string | null } & Record<
  'id' | 'hash' | 'text' | 'checkout' | 'method',
  string
>
/** A payment as the books of an agent have it: what a budget is counted by. */
export type PaidUnder = { mandate: string; root: string | null; amount: number; at: number }
/** What a verified mandate pays, to whom and by what. */
type Paid = Pick<MandatedPayment, 'amount' | 'payee' | 'payer' | 'instrument'>

const toObject = (value: unknown): JsonObject => (isObject(value) ? value : {})
const toId = ({ jws }: SdJwt): string => hashText(jws.signingInput)
/** The hops of a chain; none where it cannot be read. */
const parseHops = (chain: string | undefined): SdJwt[] => attempt([], () => parseChain(chain ?? '')) ?? []
export const isChain = (text: string | undefined): text is string => parseHops(text).length > 0
const readHop = (hop: SdJwt | undefined, isRoot: boolean): JsonObject =>
  (hop && attempt([], () => readContent(discloseClaims(hop).claims, 'mandate', isRoot))) ?? {}

/** The mandate of a message. Refuses with the sample's words where there is none. */
export const readMandate = (message: Incoming): Mandate => {
  const chain = message.get(keys.paymentMandateSdJwt)
  if (typeof chain === 'string') {
    const hops = parseHops(chain)
    const [root, last = refuse('the payment mandate cannot be read.')] = [hops[0], hops.at(-1)]
    const isOpen = root !== undefined && root !== last
    const { transaction_id: checkout, payment_instrument: by } = readHop(last, !isOpen)
    return {
      ...{ version: '0.2', id: toId(last), hash: toId(last), text: chain },
      ...{ token: message.textOf(keys.token), root: isOpen ? toId(root) : null },
      ...{ checkout: String(checkout), method: String(toObject(by).type) },
    }
  }
  const wire = toObject(message.get(keys.paymentMandate) ?? fail('Missing payment_mandate.'))
  const contents = toObject(wire.payment_mandate_contents)
  const { method_name: method, details } = toObject(contents.payment_response)
  const { value } = toObject(toObject(details).token)
  return {
    ...{ version: '0.1', id: String(contents.payment_mandate_id), hash: hashJson(contents), root: null },
    ...{ text: JSON.stringify(wire), checkout: String(contents.payment_details_id), method: String(method) },
    token: typeof value === 'string' ? value : undefined,
  }
}

/** The value of a verdict; refuses with every reason against it. */
export const conclude = <Value>(
  verdict: { ok: true; value: Value } | { ok: false; violations: Violation[] },
): Value => (verdict.ok ? verdict.value : refuse(verdict.violations.map(({ message }) => message).join('; ')))

/** Verifies mandates by the keys of the configuration. Each method refuses with every reason. */
export const createVerifier = (self: Self, books: Books, table: string) => {
  const importKey = createKeyImporter()
  const trusted = self.trust.map((row) => ({ ...row, key: importKey(row.jwk, 'trust') }))
  const findKeys = (wanted: { role: string; kid?: string; issuer?: string }) =>
    trusted
      .filter(({ roles }) => roles.includes(wanted.role))
      .filter(({ kid, issuer }) => (wanted.kid ?? kid) === kid && (wanted.issuer ?? issuer) === issuer)
      .map(({ key }) => key)

  /** For whom a token is, where that is one of us. Its nonce is the shopper's: a second use is refused by what was signed. */
  const toKnown = ({ aud, nonce }: JsonObject = {}) => ({
    ...{ findKeys, importKey, now: self.now(), nonce: String(nonce ?? '') },
    audience: self.audiences.find((one) => one === aud) ?? self.audiences[0],
  })
  const toKnownOf = (chain: string) => toKnown(parseHops(chain).at(-1)?.jws.payload)
  const findSpent = ({ root, id }: Mandate) => {
    const under = books
      .list<PaidUnder>(table)
      .filter((one) => root !== null && one.root === root && one.mandate !== id)
    const last_used_at = Math.max(...under.map(({ at }) => at))
    const amount_minor = under.reduce((sum, { amount }) => sum + amount, 0)
    return { uses: under.length, amount_minor, ...(under.length > 0 && { last_used_at }) }
  }

  /** What the samples send without a cart: it is read, and nothing of it is certain. */
  const readPlaceholder = (text: string): Paid | null => {
    const read = conclude(readBy(paymentMandateV1Schema, text))
    const { payment_mandate_contents: contents, user_authorization: signature } = read
    const { payment_details_total: total, payment_response: response } = contents
    const [start = '', end = ''] = toUserPlaceholder('~', contents.payment_mandate_id).split('~')
    if (!signature.startsWith(start) || !signature.endsWith(end)) return null
    return {
      amount: total.amount,
      payee: { id: null, name: contents.merchant_agent, website: null },
      payer: { name: null, email: response.payer_email ?? null, phone: null },
      instrument: { type: response.method_name, id: null, details: null },
    }
  }
  const verifyV1 = ({ text }: Mandate, cart: unknown): Paid => {
    if (cart === undefined)
      return (
        (self.placeholders ? readPlaceholder(text) : null) ??
        refuse('the payment mandate needs its cart: send the signed CartMandate beside it.')
      )
    const { user_authorization: signature } = toObject(JSON.parse(text))
    const bound = attempt([], () => parseKeyBound(String(signature), 'user_authorization'))
    const known = { ...toKnown(bound?.binding.payload), cartAudience: self.audiences[0] }
    const profile = self.placeholders && { skipped: [] }
    return conclude(verifyPaymentV1(text, JSON.stringify(cart), { ...known, ...profile })).payment
  }
  const verifyV2 = (mandate: Mandate, hash?: string, open = readReference(mandate.text)) => {
    const facts = { transactionId: hash, openCheckoutHash: open, spent: findSpent(mandate) }
    const { closed } = conclude(verifyPaymentChain(mandate.text, toKnownOf(mandate.text), facts))
    return { ...toMandatedPayment(closed), closed }
  }
  return {
    findKeys,
    verifyV2,
    verifyCheckout: (chain: string, checkoutHash: string) =>
      conclude(verifyCheckoutChain(chain, toKnownOf(chain), { checkoutHash })),
    /** The payment of a mandate. `cart` is that of AP2 0.1; `hash` that of the checkout, where it is known. */
    verifyPayment: (mandate: Mandate, { cart, hash }: { cart?: unknown; hash?: string | undefined }): Paid =>
      mandate.version === '0.1' ? verifyV1(mandate, cart) : verifyV2(mandate, hash),
  }
}

/** What an open payment mandate says is the hash of its open checkout mandate. Who has no checkout mandate cannot check it. */
const readReference = (chain: string): string | null => {
  const { constraints } = readHop(parseHops(chain)[0], true)
  const listed = Array.isArray(constraints) ? constraints.filter(isObject) : []
  const { conditional_transaction_id: hash } = listed.find(({ type }) => type === 'payment.reference') ?? {}
  return typeof hash === 'string' ? hash : null
}

/** Signs a receipt of AP2 0.2 about a chain of mandates: of success with its ids, or with why nothing was done. */
export const signOutcome = (
  self: Self,
  chain: string,
  ids: JsonObject,
  problem?: string,
): Promise<string> => {
  const common = { iss: self.issuer, iat: self.now(), reference: toReferences(chain).jwtHash, ...ids }
  const error = { status: 'Error', error: 'invalid_mandate', error_description: problem?.slice(0, 500) }
  const receipt = { ...common, ...(problem === undefined ? { status: 'Success' } : error) }
  return signReceipt(receipt as CheckoutReceipt, self.signing)
}

/** The parts of a message that pass a mandate on; in AP2 0.1 with its cart, so that its hash can be checked. */
export const toMandateParts = ({ version, text, token }: Mandate, cart: unknown): Part[] =>
  version === '0.1'
    ? [
        { data: { [keys.paymentMandate]: JSON.parse(text) } },
        ...(cart ? [{ data: { [keys.cartMandate]: cart } }] : []),
      ]
    : [{ data: { [keys.paymentMandateSdJwt]: text } }, ...(token ? [{ data: { [keys.token]: token } }] : [])]
