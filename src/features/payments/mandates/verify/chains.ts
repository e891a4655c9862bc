import type { z } from 'zod'
import { findSigner, type Hop, type MandateKind, type Verification, verifyHops } from '../tokens/chain.ts'
import { checkTimes } from '../tokens/claims.ts'
import { hashText, isObject, type JsonObject } from '../tokens/encoding.ts'
import { parseJws } from '../tokens/jws.ts'
import { attempt, toRefuse } from '../tokens/token-error.ts'
import { checkCheckoutConstraints, checkPaymentConstraints, type PaymentFacts } from '../v2/constraints.ts'
import {
  type Checkout,
  type CheckoutMandate,
  checkoutMandateSchema,
  checkoutSchema,
  openCheckoutMandateSchema,
  openPaymentMandateSchema,
  type PaymentMandateV2,
  paymentMandateSchema,
} from '../v2/types.ts'
import { createViolation, parseBy, type Violation } from '../violations.ts'
import { conclude, refuseAt, type Verdict } from './verdict.ts'

/** A chain that was verified. Its last hop approves, those before it limit. */
type VerifiedChain<Closed> = {
  hops: Hop[]
  closed: Closed
  /** Unique for what was approved, whatever the token's text (docs/decisions/0078): a mandate is used once by it. */
  identity: string
}
/** A checkout that a person, or their agent, approved. */
export type VerifiedCheckout = VerifiedChain<CheckoutMandate> & {
  checkout: Checkout
  /** `sd_hash` of the open mandate, which `payment.reference` of an open payment mandate names. Null: approved directly. */
  openCheckoutHash: string | null
}
/** A payment that a person, or their agent, approved. */
export type VerifiedPayment = VerifiedChain<PaymentMandateV2>

/** The value of a schema; violations have the hop in their paths. */
const read = <Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  field: string,
  violations: Violation[],
) => {
  const parsed = parseBy(schema, value, { path: [field] })
  if (parsed.ok) return parsed.value
  violations.push(...parsed.violations)
  return undefined
}

/** Violations of a mandate as those of its hop. */
const toHop = (violations: readonly Violation[], field: string): Violation[] =>
  violations.map((found) => {
    const name = `${field}.${found.field}`
    return { ...found, field: name, message: found.message.replace(found.field, () => name) }
  })

const toContentField = ({ sdJwt, claims, content }: Hop): string =>
  `${sdJwt.jws.field}.payload${content === claims ? '' : '.delegate_payload[0]'}`

/**
 * Claims that an open mandate has and does not disclose may limit it, so it cannot be decided. Lists of what is allowed are the
 * exception: see `dropPartial`.
 */
const checkConcealed = (hop: Hop): Violation[] => {
  const { concealed } = hop
  const field = toContentField(hop)
  return concealed
    .filter((path) => path.startsWith(field) && !/\.(allowed|acceptable_items)\[/.test(path))
    .map((path) => {
      const text = 'has a claim that is not disclosed and may be a limit: send its disclosure'
      return createViolation('concealed_claim', path, text, 'unresolved_constraint')
    })
}

/** An entry with a claim that is not disclosed, such as its id, allows nothing: it becomes one that is not disclosed at all. */
const dropPartial = (value: unknown, field: string, concealed: readonly string[]): unknown => {
  if (Array.isArray(value))
    return value.map((item, i) => {
      const entry = `${field}[${i}]`
      const isPartial = /\.(allowed|acceptable_items)$/.test(field) && concealed.includes(entry)
      return isPartial ? { '...': '' } : dropPartial(item, entry, concealed)
    })
  if (!isObject(value)) return value
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([name, member]) => [name, dropPartial(member, `${field}.${name}`, concealed)]),
  )
}

/** The open mandates of a chain, each with the constraints that `check` finds violated. */
const checkOpen = (
  hops: readonly Hop[],
  kind: MandateKind,
  check: (content: JsonObject, field: string) => Violation[],
): Violation[] =>
  hops.slice(0, -1).flatMap((hop) => {
    if (hop.content.vct !== `mandate.${kind}.open.1`) return []
    const { field } = hop.sdJwt.jws
    const { concealed } = hop
    const content =
      concealed.length === 0 ? hop.content : dropPartial(hop.content, toContentField(hop), concealed)
    return [...checkConcealed(hop), ...check(content as JsonObject, field)]
  })

/** The claims of the checkout that a merchant signed, which the hash in the mandate must be of. */
const verifyCheckoutJwt = (
  { sdJwt, content }: Hop,
  { findKeys, now }: Verification,
  violations: Violation[],
): JsonObject | undefined => {
  const { field } = sdJwt.jws
  const refuse = toRefuse(violations, field)
  const { checkout_jwt: text, checkout_hash: hash } = content
  if (typeof text !== 'string') {
    refuse('missing_checkout_jwt', 'checkout_jwt', 'is missing or not disclosed: send it')
    return undefined
  }
  if (hash !== hashText(text)) refuse('checkout_hash', 'checkout_hash', 'is not the hash of checkout_jwt')
  return attempt(violations, () => {
    const jws = parseJws(text, `${field}.checkout_jwt`)
    findSigner(jws, 'merchant', findKeys)
    checkTimes(jws.payload, now, toRefuse(violations, jws.field))
    return jws.payload
  })
}

/**
 * Verifies a chain of checkout mandates: every signature, hash, audience, nonce, time and type, the merchant's signature of the
 * checkout and its hash, and then each constraint. `checkoutHash` is that of the checkout which the verifier would complete.
 */
export const verifyCheckoutChain = (
  token: string,
  known: Verification,
  { checkoutHash }: { checkoutHash?: string | undefined } = {},
): Verdict<VerifiedCheckout> => {
  const { hops, violations } = verifyHops(token, 'checkout', known)
  const last = hops.at(-1)
  const isWhole = last !== undefined && last.content.vct === 'mandate.checkout.1'
  const payload = isWhole ? verifyCheckoutJwt(last, known, violations) : undefined
  if (violations.length > 0 || !isWhole) return refuseAt('crypto', violations)
  const { field } = last.sdJwt.jws
  const closed = read(checkoutMandateSchema, last.content, field, violations)
  const checkout = read(checkoutSchema, payload, `${field}.checkout_jwt`, violations)
  if (checkoutHash !== undefined && last.content.checkout_hash !== checkoutHash)
    violations.push(mismatch('checkout_hash', field, 'the expected checkout', checkoutHash))
  if (!closed || !checkout) return refuseAt('constraints', violations)
  const refused = checkOpen(hops, 'checkout', (content, place) => {
    const open = read(openCheckoutMandateSchema, content, place, violations)
    if (!open) return []
    return toHop(checkCheckoutConstraints(open, last.content, checkout), place)
  })
  const root = hops.find(({ content }) => content.vct === 'mandate.checkout.open.1')
  return conclude([...violations, ...refused], {
    hops,
    closed,
    checkout,
    identity: last.identity,
    openCheckoutHash: root ? hashText(root.sdJwt.text) : null,
  })
}

const mismatch = (name: string, field: string, what: string, expected: string): Violation =>
  createViolation(`${name}_mismatch`, `${field}.${name}`, `is not that of ${what}, ${expected}`)

/**
 * Verifies a chain of payment mandates as `verifyCheckoutChain` does. `transactionId` is the hash of the checkout that is paid,
 * `openCheckoutHash` that of its open mandate. What constraints need and the facts do not have cannot be decided, and is refused.
 */
export const verifyPaymentChain = (
  token: string,
  known: Verification,
  { transactionId, ...facts }: { transactionId?: string | undefined } & Omit<PaymentFacts, 'now'> = {},
): Verdict<VerifiedPayment> => {
  const { hops, violations } = verifyHops(token, 'payment', known)
  const last = hops.at(-1)
  if (violations.length > 0 || !last) return refuseAt('crypto', violations)
  const { field } = last.sdJwt.jws
  const closed = read(paymentMandateSchema, last.content, field, violations)
  if (transactionId !== undefined && last.content.transaction_id !== transactionId)
    violations.push(mismatch('transaction_id', field, 'the checkout that is paid', transactionId))
  if (!closed) return refuseAt('constraints', violations)
  const refused = checkPaymentFacts({ hops, closed }, { ...facts, now: known.now })
  return conclude([...violations, ...refused], { hops, closed, identity: last.identity })
}

/**
 * The constraints of a verified chain alone, by other facts: what was spent is known for certain under a lock only, and signatures
 * need not be verified under it.
 */
export const checkPaymentFacts = (
  { hops, closed }: Pick<VerifiedPayment, 'hops' | 'closed'>,
  facts: PaymentFacts,
): Violation[] => {
  const violations: Violation[] = []
  const refused = checkOpen(hops, 'payment', (content, place) => {
    const open = read(openPaymentMandateSchema, content, place, violations)
    return open ? toHop(checkPaymentConstraints(open, closed, facts), place) : []
  })
  return [...violations, ...refused]
}
