import { CanonicalJsonError } from '../../../canonical-json.ts'
import { readTimeSpan } from '../calendar.ts'
import type { MandatedPayment } from '../model.ts'
import { hashJson, isHashOf } from '../tokens/authorizations.ts'
import { findSigner, identify, type Verification } from '../tokens/chain.ts'
import { checkAudience, checkTimes } from '../tokens/claims.ts'
import { hashText, isObject, type JsonObject } from '../tokens/encoding.ts'
import { type Jws, parseJws, verifyJws } from '../tokens/jws.ts'
import { parseKeyBound, unwrapToken } from '../tokens/key-binding.ts'
import { discloseClaims } from '../tokens/sd-jwt.ts'
import { attempt, type Refuse, TokenError, toRefuse } from '../tokens/token-error.ts'
import { joinCartAndPayment } from '../v1/payment.ts'
import {
  type CartMandate,
  cartMandateSchema,
  type PaymentMandateV1,
  paymentMandateV1Schema,
} from '../v1/types.ts'
import { createViolation, readBy, toFieldPath, type Violation } from '../violations.ts'
import { isMerchantPlaceholder, skippedChecks, toDemoIdentity, toUserPlaceholder } from './placeholders.ts'
import { conclude, refuseAt, type Verdict } from './verdict.ts'

/** A cart of AP2 0.1 whose merchant signed it. `identity` is unique for what the merchant signed, whatever the token's text. */
export type VerifiedCart = { cart: CartMandate; identity: string }
/** A payment of AP2 0.1 that a person signed, and its cart. */
export type VerifiedPaymentV1 = { payment: MandatedPayment; identity: string }

/** What is known of a JSON text: its value by the types, the members that are hashed, and why it is refused. */
type Received<Value> = { value: Value | undefined; wire: JsonObject; crypto: Violation[]; types: Violation[] }

const readWire = <Schema extends Parameters<typeof readBy>[0]>(schema: Schema, raw: string) => {
  const read = readBy(schema, raw)
  const received = { wire: {}, crypto: [], types: [] as Violation[] }
  if (read.ok) return { ...received, value: read.value, wire: JSON.parse(raw) as JsonObject }
  const isUnreadable = read.violations.some(({ field }) => field === '')
  if (isUnreadable) return { ...received, value: undefined, crypto: read.violations }
  return { ...received, value: undefined, wire: JSON.parse(raw) as JsonObject, types: read.violations }
}

/** The hash of a mandate as it was received, with its unsigned members; null, and a violation that names the member, where it has none. */
export const hashReceived = (wire: unknown, violations: Violation[]): string | null => {
  try {
    return hashJson(wire)
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    // a deep path is long, and a name may be what has no form
    const field = toFieldPath(error.path).toWellFormed().slice(0, 300)
    violations.push(
      createViolation('no_canonical_json', field, `cannot be signed: it ${error.message}; leave it out`),
    )
    return null
  }
}

const checkHash = (hash: unknown, value: unknown, part: string, what: string, refuse: Refuse): void => {
  try {
    if (!isHashOf(hash, value)) refuse('wrong_hash', part, `is not the hash of ${what}`)
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error
    refuse('no_canonical_json', part, `cannot be checked: ${what} ${error.message}`)
  }
}

/** Of a member that is no text, an empty one: the types refuse it, and String() throws where it has a `toString`. */
const readId = (value: unknown, name: string): string =>
  isObject(value) && typeof value[name] === 'string' ? value[name] : ''

/** The merchant's signature of the cart: by a trusted key, over this cart, for this audience, now. */
const checkMerchant = (
  { contents, merchant_authorization, merchantAuthorization, merchant_signature }: JsonObject,
  { findKeys, now, audience, skipped }: Omit<Verification, 'nonce' | 'importKey'>,
  violations: Violation[],
): string => {
  const text = merchant_authorization ?? merchantAuthorization ?? merchant_signature
  const refuse = toRefuse(violations, 'merchant_authorization')
  if (typeof text !== 'string') {
    violations.push(
      new TokenError('not_signed', 'merchant_authorization', 'is missing: an offer cannot be paid').violation,
    )
    return ''
  }
  if (skipped && isMerchantPlaceholder(text)) {
    skipped.push(...skippedChecks.merchant)
    return toDemoIdentity(readId(contents, 'id'))
  }
  const identity = attempt(violations, () => {
    const jws = parseJws(unwrapToken(text), 'merchant_authorization')
    for (const name of ['iss', 'sub', 'iat', 'exp', 'jti'])
      if (jws.payload[name] == null || jws.payload[name] === '')
        refuse(`missing_${name}`, name, 'is missing: add it')
    const { aud } = jws.payload
    if (!(Array.isArray(aud) ? aud : [aud]).includes(audience))
      refuse('wrong_aud', 'aud', `is ${JSON.stringify(aud)?.slice(0, 100)} in place of "${audience}"`)
    checkTimes(jws.payload, now, refuse)
    checkHash(jws.payload.cart_hash, contents, 'cart_hash', 'the contents of the cart', refuse)
    return identify(jws, findSigner(jws, 'merchant', findKeys))
  })
  return identity ?? ''
}

const checkExpiry = ({ contents }: CartMandate, now: number): Violation[] => {
  const end = readTimeSpan(contents.cart_expiry)?.to
  if (end !== undefined && end >= now * 1000) return []
  const text = `is ${contents.cart_expiry}, which is over: ask the merchant for a new cart`
  return [createViolation('cart_expired', 'contents.cart_expiry', text)]
}

/** Verifies a cart of AP2 0.1, from its JSON text as it was received: types, expiry, and the merchant's signature for this audience. */
export const verifyCart = (
  raw: string,
  known: Omit<Verification, 'nonce' | 'importKey'>,
): Verdict<VerifiedCart> => {
  const { value: cart, wire, crypto, types }: Received<CartMandate> = readWire(cartMandateSchema, raw)
  if (crypto.length > 0 || hashReceived(wire, crypto) === null) return refuseAt('crypto', crypto)
  const identity = checkMerchant(wire, known, crypto)
  if (crypto.length > 0) return refuseAt('crypto', crypto)
  return cart ? conclude(checkExpiry(cart, known.now), { cart, identity }) : refuseAt('constraints', types)
}

/** The user's signature: a trusted credential names the key, which signed both hashes for this audience and nonce. */
const checkUser = (
  text: unknown,
  known: Verification,
  hashed: readonly [cart: JsonObject, contents: unknown],
  violations: Violation[],
): string => {
  const field = 'user_authorization'
  if (typeof text !== 'string') {
    violations.push(
      new TokenError('not_signed', field, 'is missing: the user must sign the payment').violation,
    )
    return ''
  }
  const [cart, contents] = hashed
  const placeholder = toUserPlaceholder(readId(cart.contents, 'id'), readId(contents, 'payment_mandate_id'))
  if (known.skipped && text === placeholder) {
    known.skipped.push(...skippedChecks.user)
    return toDemoIdentity(placeholder)
  }
  const bound = attempt(violations, () => parseKeyBound(text, field))
  if (!bound) return ''
  const { credential, binding } = bound
  attempt(violations, () => findSigner(credential.jws, 'trusted-surface', known.findKeys))
  checkTimes(credential.jws.payload, known.now, toRefuse(violations, field))
  checkBinding(binding, hashText(credential.text), known, hashed, toRefuse(violations, binding.field))
  const identity = attempt(violations, () => {
    const { cnf } = discloseClaims(credential).claims
    const key = known.importKey(isObject(cnf) ? cnf.jwk : undefined, `${field}.cnf.jwk`)
    if (!verifyJws(binding, key))
      throw new TokenError(
        'wrong_signature',
        `${binding.field}.signature`,
        'was not made by the key of the credential',
      )
    return identify(binding, key)
  })
  return identity ?? ''
}

const checkBinding = (
  { header, payload }: Jws,
  sdHash: string,
  known: Verification,
  [cart, contents]: readonly [JsonObject, unknown],
  refuse: Refuse,
): void => {
  if (header.typ !== 'kb+jwt') refuse('wrong_typ', 'header.typ', 'is not kb+jwt')
  if (payload.sd_hash !== sdHash) refuse('sd_hash', 'sd_hash', 'is not the hash of the credential')
  if (payload.iat === undefined) refuse('missing_iat', 'iat', 'is missing: add it')
  checkTimes(payload, known.now, refuse)
  checkAudience(payload, known, refuse)
  const names = (['transaction_data', 'transaction_data_hashes'] as const).filter((name) => name in payload)
  if (names.length === 0)
    refuse('missing_transaction_data', 'transaction_data', 'is missing: it binds cart and payment')
  for (const name of names) {
    const hashes = payload[name]
    if (!Array.isArray(hashes) || hashes.length !== 2) {
      refuse('malformed_transaction_data', name, 'is not [hash of the cart, hash of the payment]')
      continue
    }
    checkHash(hashes[0], cart, `${name}[0]`, 'the cart', refuse)
    checkHash(hashes[1], contents, `${name}[1]`, 'the contents of the payment', refuse)
  }
}

/**
 * Verifies a payment of AP2 0.1 with its cart, both from their JSON texts as they were received: the user's signature over both
 * hashes, the merchant's over the cart, and that the payment is of this cart: amount, currency, payee, method, ids and expiry.
 * `cartAudience` is whom the merchant names, where that is another than whom the user names.
 */
export const verifyPaymentV1 = (
  raw: string,
  rawCart: string,
  { cartAudience, ...known }: Verification & { cartAudience?: string },
): Verdict<VerifiedPaymentV1> => {
  const cart: Received<CartMandate> = readWire(cartMandateSchema, rawCart)
  const payment: Received<PaymentMandateV1> = readWire(paymentMandateV1Schema, raw)
  const cartHash = hashReceived(cart.wire, cart.crypto)
  const violations: Violation[] = [...payment.crypto, ...cart.crypto.map(toCart)]
  if (violations.length > 0 || cartHash === null) return refuseAt('crypto', violations)
  const { user_authorization, userAuthorization, payment_mandate_contents, paymentMandateContents } =
    payment.wire
  const contents = payment_mandate_contents ?? paymentMandateContents
  const identity = checkUser(
    user_authorization ?? userAuthorization,
    known,
    [cart.wire, contents],
    violations,
  )
  checkMerchant(cart.wire, { ...known, audience: cartAudience ?? known.audience }, cart.crypto)
  violations.push(...cart.crypto.map(toCart))
  if (violations.length > 0) return refuseAt('crypto', violations)
  const types = [...payment.types, ...cart.types.map(toCart)]
  if (!payment.value || !cart.value) return refuseAt('constraints', types)
  const joined = joinCartAndPayment(cart.value, payment.value, cartHash)
  const refused = checkExpiry(cart.value, known.now).map(toCart)
  if (!joined.ok) return refuseAt('constraints', [...refused, ...joined.violations])
  return conclude(refused, { payment: joined.value, identity })
}

const toCart = (violation: Violation): Violation => ({ ...violation, field: `cart.${violation.field}` })
