import { findSigner, type MandateKind, parseChain, type Verification } from '../tokens/chain.ts'
import { checkTimes } from '../tokens/claims.ts'
import { hashText, type JsonObject } from '../tokens/encoding.ts'
import { parseJws, signJws } from '../tokens/jws.ts'
import type { SigningKey } from '../tokens/keys.ts'
import { attempt, toRefuse } from '../tokens/token-error.ts'
import { isReceiptOf } from '../v2/payment.ts'
import {
  type CheckoutReceipt,
  checkoutReceiptSchema,
  type PaymentReceiptV2,
  paymentReceiptSchema,
} from '../v2/types.ts'
import { parseBy, type Violation } from '../violations.ts'
import { conclude, refuseAt, type Verdict } from './verdict.ts'

/**
 * What a receipt says it is about: the hash of the closed mandate's JWT, as AP2's SDK writes it, and that of its whole text, as the
 * specification says (AP2.md 1.5, row 17). Both are accepted; we write the first.
 */
export const toReferences = (chain: string): { jwtHash: string; sdHash: string } => {
  const last = parseChain(chain).at(-1)
  return { jwtHash: hashText(last?.jws.text ?? ''), sdHash: hashText(last?.text ?? '') }
}

/** Signs a receipt, of success or of an error. */
export const signReceipt = (receipt: CheckoutReceipt | PaymentReceiptV2, key: SigningKey): Promise<string> =>
  signJws(receipt, key, { typ: 'JWT' })

/** Verifies a receipt about a chain of mandates: by the merchant's key for a checkout, by the payment processor's for a payment. */
export const verifyReceipt = <Kind extends MandateKind>(
  token: string,
  kind: Kind,
  chain: string,
  { findKeys, now }: Pick<Verification, 'findKeys' | 'now'>,
): Verdict<Kind extends 'checkout' ? CheckoutReceipt : PaymentReceiptV2> => {
  const violations: Violation[] = []
  const refuse = toRefuse(violations, 'receipt')
  const payload = attempt(violations, (): JsonObject => {
    const jws = parseJws(token, 'receipt')
    findSigner(jws, kind === 'checkout' ? 'merchant' : 'payment-processor', findKeys)
    checkTimes(jws.payload, now, refuse)
    return jws.payload
  })
  const references = attempt(violations, () => toReferences(chain))
  if (payload && references && !isReceiptOf(payload, references))
    refuse('wrong_reference', 'reference', 'is not the hash of the closed mandate')
  if (violations.length > 0) return refuseAt('crypto', violations)
  const parsed = parseBy(kind === 'checkout' ? checkoutReceiptSchema : paymentReceiptSchema, payload)
  return parsed.ok ? conclude([], parsed.value as never) : refuseAt('constraints', parsed.violations)
}
