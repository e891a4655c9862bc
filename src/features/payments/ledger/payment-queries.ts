import { queryOne } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'

/** `ordered`: the executor has not taken it yet. */
export type PaymentStatus =
  | 'ordered'
  | 'reserved'
  | 'sent'
  | 'succeeded'
  | 'declined'
  | 'unknown'
  | 'released'

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

/** A payment, without secrets. Amounts are in minor units. */
export type PaymentView = {
  id: string
  run_id: string | null
  status: PaymentStatus
  version: '0.1' | '0.2' | null
  amount: { minor: number; currency: string } | null
  payee: { id: string | null; name: string } | null
  checkout_id: string | null
  provider_id: string | null
  provider_ref: string | null
  refunded_minor: number
  challenge: PaymentOutcome['challenge'] | null
  /** Its provider takes the placeholders of samples: `skipped_checks` were not made. */
  demo: boolean
  skipped_checks: string[]
  outcome: PaymentOutcome | null
  /** A signed JWT, of success or of an error. */
  receipt: string | null
  created_at: string
  updated_at: string
}

/** What is known of a payment: the tokens as received, who signed them, each request to the provider, and each step with its checks. */
export type PaymentTrail = {
  payment: PaymentView
  mandates: { kind: string; raw: string; issuer_key: string; signing_hash: string; verified_at: string }[]
  operations: {
    id: string
    kind: string
    amount_minor: number
    currency: string
    status: string
    sends: number
    first_sent_at: string | null
    answer: unknown
  }[]
  events: { kind: string; at: string; detail: Record<string, unknown> }[]
}

type Row = Omit<PaymentView, 'amount' | 'created_at' | 'updated_at'> & {
  amount_minor: number | null
  currency: string | null
  created_at: Date
  updated_at: Date
}

const toView = ({ amount_minor, currency, created_at, updated_at, ...row }: Row): PaymentView => ({
  ...row,
  amount: amount_minor === null || currency === null ? null : { minor: amount_minor, currency },
  created_at: created_at.toISOString(),
  updated_at: updated_at.toISOString(),
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
    sql.query<PaymentTrail['mandates'][number] & { verified_at: Date }>(
      `SELECT kind, raw, issuer_key, signing_hash, verified_at FROM mandates ${ofPayment} ORDER BY kind`,
      values,
    ),
    sql.query<PaymentTrail['operations'][number] & { first_sent_at: Date | null }>(
      `SELECT operation_id AS id, kind, amount_minor, currency, status, sends, first_sent_at, answer
       FROM payment_operations ${ofPayment} ORDER BY created_at`,
      values,
    ),
    sql.query<PaymentTrail['events'][number] & { at: Date }>(
      `SELECT kind, at, detail FROM payment_events ${ofPayment} ORDER BY event_id`,
      values,
    ),
  ])
  return {
    payment,
    mandates: mandates.rows.map((row) => ({ ...row, verified_at: toIso(row.verified_at) })),
    operations: operations.rows.map((row) => ({
      ...row,
      first_sent_at: row.first_sent_at && toIso(row.first_sent_at),
    })),
    events: events.rows.map((row) => ({ ...row, at: toIso(row.at) })),
  }
}

const toIso = (at: Date | string): string => new Date(at).toISOString()
