import type { MandatedPayment } from '../../src/payments/mandates/model.ts'
import { hashJson } from '../../src/payments/mandates/tokens/authorizations.ts'
import { parseChain, readContent } from '../../src/payments/mandates/tokens/chain.ts'
import { hashText, isObject, type JsonObject } from '../../src/payments/mandates/tokens/encoding.ts'
import { parseKeyBound } from '../../src/payments/mandates/tokens/key-binding.ts'
import { createKeyImporter } from '../../src/payments/mandates/tokens/keys.ts'
import { discloseClaims } from '../../src/payments/mandates/tokens/sd-jwt.ts'
import { attempt } from '../../src/payments/mandates/tokens/token-error.ts'
import { paymentMandateV1Schema } from '../../src/payments/mandates/v1/types.ts'
import { toMandatedPayment } from '../../src/payments/mandates/v2/payment.ts'
import type { CheckoutReceipt } from '../../src/payments/mandates/v2/types.ts'
import { verifyPaymentV1 } from '../../src/payments/mandates/verify/carts.ts'
import { verifyPaymentChain } from '../../src/payments/mandates/verify/chains.ts'
import { toUserPlaceholder } from '../../src/payments/mandates/verify/placeholders.ts'
import { signReceipt, toReferences } from '../../src/payments/mandates/verify/receipts.ts'
import { readBy, type Violation } from '../../src/payments/mandates/violations.ts'
import { ap2Keys } from '../../src/state/ap2-wire.ts'
import type { Books } from './books.ts'
import type { Self } from './config.ts'
import { fail, type Incoming, type Part, refuse } from './messages.ts'

/** A payment mandate, as a message has it: what it is about, before anything is verified. */
export type Mandate = {
  version: '0.1' | '0.2'
  /** Of its payment: that of AP2 0.1, or made of what the last signature of a chain covers. */
  id: string
  /** Of all that it says: another content under one id is refused. */
  hash: string
  /** As it was received. */
  text: string
  /** AP2 0.1: the order that it pays. 0.2: the hash of the checkout. */
  checkout: string
  token: string | undefined
  /** The open mandate that it closes. */
  root: string | null
}

const toObject = (value: unknown): JsonObject => (isObject(value) ? value : {})

/** The mandate of a message. Refuses with the sample's words where there is none. */
export const readMandate = (message: Incoming): Mandate => {
  const chain = message.get(ap2Keys.paymentMandateSdJwt)
  if (typeof chain === 'string') {
    const hops = attempt([], () => parseChain(chain)) ?? refuse('the payment mandate cannot be read.')
    const last = hops.at(-1)
    const content =
      last && attempt([], () => readContent(discloseClaims(last).claims, 'mandate', hops.length === 1))
    const id = hashText(last?.jws.signingInput ?? '')
    return {
      ...{ version: '0.2', id, hash: id, text: chain, checkout: String(content?.transaction_id) },
      token: message.textOf(ap2Keys.token),
      root: hops.length > 1 ? hashText(hops[0]?.jws.signingInput ?? '') : null,
    }
  }
  const wire = toObject(message.get(ap2Keys.paymentMandate) ?? fail('Missing payment_mandate.'))
  const contents = toObject(wire.payment_mandate_contents)
  const { token } = toObject(toObject(contents.payment_response).details)
  return {
    ...{ version: '0.1', id: String(contents.payment_mandate_id), hash: hashJson(contents), root: null },
    ...{ text: JSON.stringify(wire), checkout: String(contents.payment_details_id) },
    token: isObject(token) && typeof token.value === 'string' ? token.value : undefined,
  }
}

/** A payment as the books of an agent have it: what a budget is counted by. */
export type PaidUnder = { mandate: string; root: string | null; amount: number; at: number }

/** The value of a verdict; refuses with every reason against it. */
export const conclude = <Value>(
  verdict: { ok: true; value: Value } | { ok: false; violations: Violation[] },
): Value => (verdict.ok ? verdict.value : refuse(verdict.violations.map(({ message }) => message).join('; ')))

const cartMissing = 'the payment mandate needs its cart: send the signed CartMandate beside it.'

/** Verifies mandates by the keys of the configuration. Each method refuses with every reason. */
export const createVerifier = (self: Self, books: Books, table: string) => {
  const importKey = createKeyImporter()
  const trusted = self.trust.map((row) => ({ ...row, key: importKey(row.jwk, 'trust') }))
  const findKeys = (wanted: { role: string; kid?: string; issuer?: string }) =>
    trusted
      .filter(
        ({ roles, kid, issuer }) =>
          roles.includes(wanted.role) && (wanted.kid ?? kid) === kid && (wanted.issuer ?? issuer) === issuer,
      )
      .map(({ key }) => key)

  /** For whom a token is, where that is one of us. Its nonce is the shopper's: a second use is refused by what was signed. */
  const toKnown = ({ aud, nonce }: JsonObject) => ({
    ...{ findKeys, importKey, now: self.now(), nonce: String(nonce ?? '') },
    audience: self.audiences.find((one) => one === aud) ?? self.audiences[0] ?? '',
  })
  const findSpent = ({ root, id }: Mandate) => {
    const under = books
      .list<PaidUnder>(table)
      .filter((one) => root !== null && one.root === root && one.mandate !== id)
    const last_used_at = Math.max(...under.map(({ at }) => at))
    const amount_minor = under.reduce((sum, { amount }) => sum + amount, 0)
    return { uses: under.length, amount_minor, ...(under.length > 0 && { last_used_at }) }
  }

  /** What the samples send without a cart: it is read, and nothing of it is certain. */
  const readPlaceholder = ({ text }: Mandate): MandatedPayment => {
    const { payment_mandate_contents: contents, user_authorization } = conclude(
      readBy(paymentMandateV1Schema, text),
    )
    const { payment_details_total: total } = contents
    const end = toUserPlaceholder('', contents.payment_mandate_id).replace(/^.*(?=_fake_payment)/, '')
    if (!/^fake_cart_mandate_hash_/.test(user_authorization) || !user_authorization.endsWith(end))
      refuse(cartMissing)
    return {
      ...{ version: '0.1', amount: total.amount, expiresAt: null, executionDate: null },
      payee: { id: null, name: contents.merchant_agent, website: null },
      payer: { name: null, email: contents.payment_response.payer_email ?? null, phone: null },
      instrument: { type: contents.payment_response.method_name, id: null, details: null },
      checkout: { id: contents.payment_details_id, cart_id: '', hash: '' },
    }
  }

  const verifyV1 = (mandate: Mandate, cart: unknown): MandatedPayment => {
    if (cart === undefined && self.placeholders) return readPlaceholder(mandate)
    if (cart === undefined) refuse(cartMissing)
    const wire = toObject(JSON.parse(mandate.text))
    const bound = attempt([], () => parseKeyBound(String(wire.user_authorization), 'user_authorization'))
    const known = { ...toKnown(bound?.binding.payload ?? {}), cartAudience: self.audiences[0] ?? '' }
    const verdict = verifyPaymentV1(mandate.text, JSON.stringify(cart), {
      ...known,
      ...(self.placeholders && { skipped: [] }),
    })
    return conclude(verdict).payment
  }

  const verifyV2 = (
    mandate: Mandate,
    checkout: { hash?: string | undefined; open?: string | null | undefined },
  ) => {
    const last = parseChain(mandate.text).at(-1)
    const openCheckoutHash = checkout.open === undefined ? readReference(mandate.text) : checkout.open
    const facts = { transactionId: checkout.hash, openCheckoutHash, spent: findSpent(mandate) }
    const verified = conclude(verifyPaymentChain(mandate.text, toKnown(last?.jws.payload ?? {}), facts))
    return { ...toMandatedPayment(verified.closed), closed: verified.closed }
  }

  return {
    findKeys,
    toKnown,
    verifyV2,
    /** The payment of a mandate. `cart` is that of AP2 0.1; `hash` that of the checkout, where it is known. */
    verifyPayment: (
      mandate: Mandate,
      { cart, hash }: { cart?: unknown; hash?: string | undefined },
    ): MandatedPayment => (mandate.version === '0.1' ? verifyV1(mandate, cart) : verifyV2(mandate, { hash })),
  }
}

/** What an open payment mandate says is the hash of its open checkout mandate. Who has no checkout mandate cannot check it. */
const readReference = (chain: string): string | null => {
  const [root] = parseChain(chain)
  const content = root && attempt([], () => readContent(discloseClaims(root).claims, 'mandate', true))
  const constraints = Array.isArray(content?.constraints) ? content.constraints.filter(isObject) : []
  const reference = constraints.find(({ type }) => type === 'payment.reference')
  return typeof reference?.conditional_transaction_id === 'string'
    ? reference.conditional_transaction_id
    : null
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
export const toMandateParts = ({ version, text, token }: Mandate, cart: unknown): Part[] => [
  {
    data: {
      [version === '0.1' ? ap2Keys.paymentMandate : ap2Keys.paymentMandateSdJwt]:
        version === '0.1' ? JSON.parse(text) : text,
    },
  },
  ...(version === '0.1' && cart ? [{ data: { [ap2Keys.cartMandate]: cart } }] : []),
  ...(version === '0.2' && token ? [{ data: { [ap2Keys.token]: token } }] : []),
]
