import { queryOne } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'

/** An order that this executor has taken. `takes` is its fence. */
export type TakenOrder = {
  order_id: string
  tenant: string
  /** `present`: of earlier versions, and nothing more is done for it. */
  kind: 'pay' | 'present' | 'capture' | 'void' | 'refund' | 'settle' | 'answer'
  payment_id: string
  run_id: string | null
  plan_seq: number | null
  call_index: number | null
  request: Record<string, unknown>
  sealed: string | null
  /** Who approved the payment, or the open mandate that it is under; null: no one has. */
  user_id: string | null
  /** It pays under open mandates, which the executor closes. */
  open_mandate_id: string | null
  canceled_at: Date | null
  takes: number
  /** When it was taken, by the clock of the database: mandates count by it. */
  now: Date
}

/** A payment that this executor has claimed. `epoch` is its fence. */
export type ClaimedPayment = {
  payment_id: string
  tenant: string
  order_id: string
  status: 'reserved' | 'sent' | 'succeeded' | 'declined' | 'unknown' | 'released'
  version: '0.1' | '0.2'
  spend_id: string
  amount_minor: number
  currency: string
  payee: { id: string | null; name: string }
  provider_id: string
  provider_ref: string | null
  is_authorized: boolean
  refunded_minor: number
  challenge: { type: 'otp' | 'redirect'; text: string } | null
  epoch: number
  tries: number
  /** Since something became known of it: it was sent, or its provider gave a clear answer, be it that it is pending. */
  silent_ms: number
}

const paymentColumns = `payment_id, tenant, order_id, status, version, spend_id, amount_minor, currency, payee, provider_id,
  provider_ref, is_authorized, refunded_minor, challenge, epoch, tries,
  (extract(epoch FROM clock_timestamp() - updated_at) * 1000)::float8 AS silent_ms`

const leaseEnd = (parameter: string): string =>
  `clock_timestamp() + ${parameter}::int * interval '1 millisecond'`

const isFree = 'next_at <= clock_timestamp() AND (lease_until IS NULL OR lease_until < clock_timestamp())'

const takeStatement = `
  UPDATE payment_orders SET takes = takes + 1, lease_until = ${leaseEnd('$2')}, taken_at = COALESCE(taken_at, clock_timestamp())
  WHERE order_id IN (SELECT order_id FROM payment_orders WHERE done_at IS NULL AND ${isFree}
    ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING order_id, tenant, kind, payment_id, run_id, plan_seq, call_index, request, sealed, open_mandate_id, canceled_at, takes, clock_timestamp() AS now,
    CASE WHEN sealed IS NOT NULL THEN COALESCE(
      (SELECT user_id FROM consents c WHERE c.tenant = payment_orders.tenant AND c.payment_id = payment_orders.payment_id AND c.status = 'verified'),
      (SELECT m.user_id FROM payments p JOIN open_mandates m ON m.mandate_id = p.open_mandate_id AND m.tenant = p.tenant
       WHERE p.tenant = payment_orders.tenant AND p.payment_id = payment_orders.payment_id)) END AS user_id`

/** Takes orders that no executor has, at most `limit`. */
export const takeOrders = async (sql: Sql, limit: number, leaseMs: number): Promise<TakenOrder[]> =>
  (await sql.query<TakenOrder>(takeStatement, [limit, leaseMs])).rows

const claimOpenStatement = `
  UPDATE payments SET epoch = epoch + 1, lease_until = ${leaseEnd('$2')}
  WHERE payment_id IN (SELECT payment_id FROM payments WHERE status IN ('reserved', 'sent', 'unknown') AND NOT (status = 'sent' AND is_authorized) AND ${isFree}
    ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING ${paymentColumns}`

/** Claims payments that are not settled and are due: of an executor that died, pending ones, unknown ones. */
export const claimOpenPayments = async (
  sql: Sql,
  limit: number,
  leaseMs: number,
): Promise<ClaimedPayment[]> => (await sql.query<ClaimedPayment>(claimOpenStatement, [limit, leaseMs])).rows

/** Claims one payment, or null while another executor has it. */
export const claimPayment = (sql: Sql, paymentId: string, leaseMs: number): Promise<ClaimedPayment | null> =>
  queryOne<ClaimedPayment>(
    sql,
    `UPDATE payments SET epoch = epoch + 1, lease_until = ${leaseEnd('$2')}
     WHERE payment_id = $1 AND (lease_until IS NULL OR lease_until < clock_timestamp()) RETURNING ${paymentColumns}`,
    [paymentId, leaseMs],
  )

/** Gives a payment back; it is due again after `delayMs`. `isHeard`: its provider gave a clear answer that changes nothing. */
export const yieldPayment = async (
  sql: Sql,
  { payment_id, epoch }: Pick<ClaimedPayment, 'payment_id' | 'epoch'>,
  delayMs: number,
  isHeard = false,
): Promise<void> =>
  void (await sql.query(
    `UPDATE payments SET lease_until = NULL, tries = tries + 1, next_at = ${leaseEnd('$3')},
       updated_at = CASE WHEN $4::boolean THEN clock_timestamp() ELSE updated_at END WHERE payment_id = $1 AND epoch = $2`,
    [payment_id, epoch, delayMs, isHeard],
  ))

/** Gives an order back; it is due again after `delayMs`. */
export const yieldOrder = async (
  sql: Sql,
  { order_id, takes }: Pick<TakenOrder, 'order_id' | 'takes'>,
  delayMs: number,
): Promise<void> =>
  void (await sql.query(
    `UPDATE payment_orders SET lease_until = NULL, next_at = ${leaseEnd('$3')} WHERE order_id = $1 AND takes = $2`,
    [order_id, takes, delayMs],
  ))
