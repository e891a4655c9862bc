import { z } from 'zod'
import { queryOne } from '../../../infra/database/database.ts'
import { type Dated, toIsoTimes } from '../../../infra/database/row-times.ts'
import type { Sql } from '../../../state/ports/sql.ts'

/**
 * What a run and a person read of a payment. `message` says in plain words what happened and what to do; `code` is the protocol's.
 * A `challenge` wants the answer of the person.
 */
export type PaymentOutcome = {
  payment_id: string
  status: 'succeeded' | 'authorized' | 'declined' | 'unknown' | 'released' | 'challenge'
  message: string
  code?: string
  challenge?: { type: 'otp' | 'redirect'; text: string }
}

const nullableText = z.string().nullable()
/**
 * A payment, without secrets. Amounts are in minor units. `ordered`: the executor has not taken it yet. `demo`: its provider takes the
 * placeholders of samples. `receipt`: a signed JWT, of success or of an error.
 */
const paymentSchema = z.strictObject({
  id: z.string(),
  run_id: nullableText,
  status: z.enum(['ordered', 'reserved', 'sent', 'succeeded', 'declined', 'unknown', 'released']),
  version: nullableText,
  amount: z.strictObject({ minor: z.int(), currency: z.string() }).nullable(),
  payee: z.looseObject({ id: nullableText.optional(), name: z.string().optional() }).nullable(),
  checkout_id: nullableText,
  provider_id: nullableText,
  provider_ref: nullableText,
  refunded_minor: z.int(),
  challenge: z.looseObject({}).nullable(),
  demo: z.boolean(),
  skipped_checks: z.array(z.string()).describe('Checks that the demo profile left out'),
  outcome: z.looseObject({ status: z.string(), message: z.string() }).nullable(),
  receipt: nullableText,
  created_at: z.string(),
  updated_at: z.string(),
})

/** What is known of a payment: the tokens as received, who signed them, each request to the provider, and each step with its checks. */
export const trailSchema = z.strictObject({
  payment: paymentSchema,
  mandates: z.array(
    z.strictObject({
      kind: z.string(),
      raw: z.string(),
      issuer_key: z.string(),
      signing_hash: z.string(),
      verified_at: z.string(),
    }),
  ),
  operations: z.array(
    z.strictObject({
      id: z.string(),
      kind: z.string(),
      amount_minor: z.int(),
      currency: z.string(),
      status: z.string(),
      sends: z.int(),
      first_sent_at: nullableText,
      answer: z.unknown(),
    }),
  ),
  events: z.array(
    z.strictObject({ kind: z.string(), at: z.string(), detail: z.record(z.string(), z.unknown()) }),
  ),
})

/** See `paymentSchema`. */
export type PaymentView = Omit<
  z.infer<typeof paymentSchema>,
  'version' | 'payee' | 'challenge' | 'outcome'
> & {
  version: '0.1' | '0.2' | null
  payee: { id: string | null; name: string } | null
  challenge: PaymentOutcome['challenge'] | null
  outcome: PaymentOutcome | null
}

/** See `trailSchema`. */
export type PaymentTrail = Omit<z.infer<typeof trailSchema>, 'payment'> & { payment: PaymentView }

type Row = Dated<Omit<PaymentView, 'amount'>> & { amount_minor: number | null; currency: string | null }

const toView = ({ amount_minor, currency, ...row }: Row): PaymentView => ({
  ...toIsoTimes(row),
  amount: amount_minor === null || currency === null ? null : { minor: amount_minor, currency },
})

const paymentStatement = `
  SELECT o.payment_id AS id, o.run_id, COALESCE(p.status, 'ordered') AS status, p.version, p.amount_minor, p.currency, p.payee,
    p.checkout_id, p.provider_id, p.provider_ref, COALESCE(p.refunded_minor, 0) AS refunded_minor, p.challenge, p.outcome, p.receipt,
    p.skipped_checks IS NOT NULL AS demo, COALESCE(p.skipped_checks, '[]') AS skipped_checks, o.created_at, COALESCE(p.updated_at, o.created_at) AS updated_at
  FROM payment_orders o LEFT JOIN payments p ON p.payment_id = o.payment_id AND p.tenant = o.tenant
  WHERE o.tenant = $1 AND o.payment_id = $2 AND o.kind = 'pay'`

/** A payment of a business, or null. */
export const readPayment = async (
  sql: Sql,
  tenant: string,
  paymentId: string,
): Promise<PaymentView | null> => {
  const row = await queryOne<Row>(sql, paymentStatement, [tenant, paymentId])
  return row && toView(row)
}

/** Everything that is known of a payment of a business, or null. As the API of the business; workers cannot read it. */
export const readTrail = async (
  sql: Sql,
  tenant: string,
  paymentId: string,
): Promise<PaymentTrail | null> => {
  const payment = await readPayment(sql, tenant, paymentId)
  if (!payment) return null
  const values = [tenant, paymentId]
  const ofPayment = 'WHERE tenant = $1 AND payment_id = $2'
  const [mandates, operations, events] = await Promise.all([
    sql.query<Dated<PaymentTrail['mandates'][number]>>(
      `SELECT kind, raw, issuer_key, signing_hash, verified_at FROM mandates ${ofPayment} ORDER BY kind`,
      values,
    ),
    sql.query<Dated<PaymentTrail['operations'][number]>>(
      `SELECT operation_id AS id, kind, amount_minor, currency, status, sends, first_sent_at, answer
       FROM payment_operations ${ofPayment} ORDER BY created_at`,
      values,
    ),
    sql.query<Omit<PaymentTrail['events'][number], 'at'> & { at: Date }>(
      `SELECT kind, at, detail FROM payment_events ${ofPayment} ORDER BY event_id`,
      values,
    ),
  ])
  return {
    payment,
    mandates: mandates.rows.map(toIsoTimes),
    operations: operations.rows.map(toIsoTimes),
    events: events.rows.map(toIsoTimes),
  }
}
