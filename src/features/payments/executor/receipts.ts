import { queryOne } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { PaymentOutcome } from '../ledger/payment-queries.ts'
import type { Money } from '../mandates/money.ts'
import { hashText } from '../mandates/tokens/encoding.ts'
import { signJws } from '../mandates/tokens/jws.ts'
import type { SigningKey } from '../mandates/tokens/keys.ts'
import { buildPaymentReceiptV1 } from '../mandates/v1/build.ts'
import { paymentDraftSchema } from '../mandates/v1/types.ts'
import { signReceipt, toReferences } from '../mandates/verify/receipts.ts'
import { readBy } from '../mandates/violations.ts'

/** Who signs receipts. */
export type ReceiptSigner = { issuer: string; signingKey(): Promise<SigningKey> }

/** What a receipt is about. `token` is the payment mandate as received. */
export type ReceiptFacts = {
  version: '0.1' | '0.2'
  token: string
  outcome: PaymentOutcome
  amount: Money | null
  provider_ref: string | null
  network_ref: string | null
  /** What the demo profile did not check. */
  skipped: readonly string[]
  now: Date
}

/** What the receipt of a payment is about: the token as received, and which checks were skipped. */
export type KnownMandate = Pick<ReceiptFacts, 'token' | 'skipped'>

/** The mandate of a payment that was reserved. */
export const readMandate = async (sql: Sql, paymentId: string): Promise<KnownMandate> => {
  const statement = `SELECT m.raw AS token, COALESCE(p.skipped_checks, '[]') AS skipped FROM payments p
    JOIN mandates m ON m.payment_id = p.payment_id AND m.kind = 'payment' WHERE p.payment_id = $1`
  return (await queryOne<KnownMandate>(sql, statement, [paymentId])) ?? { token: '', skipped: [] }
}

/** What a receipt and a trail say of a payment in the demo profile. */
export const toDemoFacts = (
  skipped: readonly string[],
): { demo?: true; skipped_checks?: readonly string[] } =>
  skipped.length > 0 ? { demo: true, skipped_checks: skipped } : {}

const toReference = (token: string): string => {
  try {
    return toReferences(token).jwtHash
  } catch {
    // no chain at all: its text is all there is to refer to
    return hashText(token)
  }
}

/** AP2 0.1 has plain JSON; signed, it is the payload of a JWT. Null: the mandate names neither itself nor an amount. */
const buildV1 = ({ token, outcome, amount, provider_ref, network_ref, now }: ReceiptFacts) => {
  const draft = readBy(paymentDraftSchema, token)
  const contents = draft.ok ? draft.value.payment_mandate_contents : undefined
  const paid = amount ?? contents?.payment_details_total.amount
  if (!contents?.payment_mandate_id || !paid) return null
  const { wire } = buildPaymentReceiptV1({
    payment_mandate_id: contents.payment_mandate_id,
    timestamp: now.toISOString(),
    payment_id: outcome.payment_id,
    amount: paid,
    payment_status:
      outcome.status === 'succeeded'
        ? {
            merchant_confirmation_id: outcome.payment_id,
            psp_confirmation_id: provider_ref ?? outcome.payment_id,
            ...(network_ref && { network_confirmation_id: network_ref }),
          }
        : outcome.code === 'payment_declined'
          ? { failure_message: outcome.message }
          : { error_message: outcome.message },
  })
  return wire
}

/** A signed receipt of a payment that is settled, of success or of an error. */
export const createReceipt = async (
  facts: ReceiptFacts,
  { issuer, signingKey }: ReceiptSigner,
): Promise<string> => {
  const key = await signingKey()
  const iat = Math.floor(facts.now.getTime() / 1000)
  const v1 = facts.version === '0.1' ? buildV1(facts) : null
  if (v1) return signJws({ iss: issuer, iat, ...v1, ...toDemoFacts(facts.skipped) }, key, { typ: 'JWT' })
  const { outcome, provider_ref, network_ref } = facts
  const common = { iss: issuer, iat, reference: toReference(facts.token), payment_id: outcome.payment_id }
  return signReceipt(
    outcome.status === 'succeeded'
      ? {
          status: 'Success',
          ...common,
          psp_confirmation_id: provider_ref ?? outcome.payment_id,
          network_confirmation_id: network_ref ?? provider_ref ?? outcome.payment_id,
        }
      : {
          status: 'Error',
          ...common,
          error: outcome.code ?? 'payment_declined',
          error_description: outcome.message,
        },
    key,
  )
}
