import { queryOne, type RunKey, type TransactionalSql } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { PaymentOutcome } from '../ledger/payment-queries.ts'
import { PaymentLostError } from './operations.ts'
import type { ClaimedPayment } from './work-queue.ts'

/** Wakes a worker for a run whose wait has ended. Without it the outbox does, half a second later. */
export type WakeRun = (run: RunKey) => void

type EndedWaits = { tenant: string; run_id: string | null; ended: number }

const wakeWaiting = (row: EndedWaits | null, wake: WakeRun): void => {
  if (row?.run_id && row.ended > 0) wake({ tenant: row.tenant, run_id: row.run_id })
}

/** What changes when something became known of a payment. Everything that is left out stays. */
export type PaymentChange = {
  /** Statuses that this may follow: a payment that is settled never changes. */
  from: readonly ClaimedPayment['status'][]
  status?: ClaimedPayment['status']
  /** What becomes of the reservation. */
  spending?: 'spent' | 'released'
  operation?: { id: string; status: 'done' | 'unknown'; answer: unknown }
  provider_ref?: string | null
  network_ref?: string | null
  isAuthorized?: boolean
  challenge?: ClaimedPayment['challenge']
  outcome?: PaymentOutcome
  receipt?: string
  /** Added to what was refunded; negative: a refund that was declined. */
  refunded?: number
  /** When the payment is looked at again, in milliseconds; null: when an order or a webhook comes. */
  delayMs: number | null
  /** Ends the wait of the run with the outcome. */
  endsWait?: boolean
  /** The order that is done by this, beside that of an operation that is done, and the outcome of both. */
  order?: { id?: string; outcome: { status: string; message: string } }
  event: { kind: string; detail: Record<string, unknown> }
}

/** Under the fence: an executor that was frozen changes nothing. */
const settleStatement = `
  WITH mine AS (
    SELECT payment_id, tenant, run_id, spend_id, amount_minor FROM payments
    WHERE payment_id = $payment_id AND epoch = $epoch AND status IN (SELECT json_array_elements_text($from::json)) FOR UPDATE
  ), operation AS (
    UPDATE payment_operations o SET status = $operationStatus, answer = $answer::json,
      request = CASE WHEN $operationStatus = 'done' THEN NULL ELSE request END
    FROM mine WHERE o.operation_id = $operationId AND o.payment_id = mine.payment_id RETURNING o.order_id, o.status
  ), spending AS (
    UPDATE mandate_spend s SET reserved_minor = reserved_minor - amount_minor, reserved_uses = reserved_uses - 1,
      spent_minor = spent_minor + CASE WHEN $spending = 'spent' THEN amount_minor ELSE 0 END,
      spent_uses = spent_uses + CASE WHEN $spending = 'spent' THEN 1 ELSE 0 END
    FROM mine WHERE s.spend_id = mine.spend_id AND $spending::text IS NOT NULL
  ), payment AS (
    UPDATE payments p SET status = COALESCE($status, status), provider_ref = COALESCE($provider_ref, provider_ref),
      network_ref = COALESCE($network_ref, network_ref), is_authorized = COALESCE($isAuthorized::boolean, is_authorized),
      challenge = $challenge::json, outcome = COALESCE($outcome::json, outcome), receipt = COALESCE($receipt, receipt),
      refunded_minor = refunded_minor + $refunded::bigint, lease_until = NULL,
      tries = CASE WHEN $status::text IS NULL THEN tries + 1 ELSE 0 END, updated_at = clock_timestamp(),
      next_at = CASE WHEN $delayMs::int IS NULL THEN 'infinity' ELSE clock_timestamp() + $delayMs::int * interval '1 millisecond' END
    FROM mine WHERE p.payment_id = mine.payment_id
  ), ordered AS (
    UPDATE payment_orders o SET done_at = clock_timestamp(), outcome = $orderOutcome::json, sealed = NULL FROM mine
    WHERE o.order_id = ANY (ARRAY[$orderId, (SELECT order_id FROM operation WHERE status = 'done')]) AND o.done_at IS NULL
  ), event AS (
    INSERT INTO payment_events (tenant, payment_id, kind, detail) SELECT tenant, payment_id, $kind, $detail::json FROM mine
  )
  SELECT tenant, run_id, CASE WHEN $endsWait::boolean THEN end_wait(tenant, 'payment', payment_id, $outcome::json) ELSE 0 END AS ended
  FROM mine`

/** Writes all of a settlement at once; false: another executor has the payment, or it is settled. */
export const settle = async (
  sql: Sql,
  { payment_id, epoch }: Pick<ClaimedPayment, 'payment_id' | 'epoch'>,
  change: PaymentChange,
  wake: WakeRun,
): Promise<boolean> => {
  const { operation, order, event } = change
  const json = (value: unknown): string | null => (value == null ? null : JSON.stringify(value))
  const row = await queryOne<EndedWaits>(sql, settleStatement, {
    payment_id,
    epoch,
    from: JSON.stringify(change.from),
    operationId: operation?.id ?? null,
    operationStatus: operation?.status ?? null,
    answer: json(operation?.answer),
    spending: change.spending ?? null,
    status: change.status ?? null,
    provider_ref: change.provider_ref ?? null,
    network_ref: change.network_ref ?? null,
    isAuthorized: change.isAuthorized ?? null,
    challenge: json(change.challenge),
    outcome: json(change.outcome),
    receipt: change.receipt ?? null,
    refunded: change.refunded ?? 0,
    delayMs: change.delayMs,
    orderId: order?.id ?? null,
    orderOutcome: json(order?.outcome),
    kind: event.kind,
    detail: JSON.stringify(event.detail),
    endsWait: change.endsWait ?? false,
  })
  wakeWaiting(row, wake)
  return row !== null
}

/** A cancel locks the run before its orders, and so does a refusal: the wait of the run ends first, and with it, or nothing does. */
const endWaitStatement = `
  SELECT tenant, run_id, end_wait(tenant, 'payment', payment_id, $3::json) AS ended FROM payment_orders
  WHERE order_id = $1 AND takes = $2 AND done_at IS NULL`

/** Ends the wait of an order's run and then changes the order, both or neither; `change` returns the row where the order is still ours. */
const endWaitOfOrder = async (
  database: TransactionalSql,
  { order_id, takes }: { order_id: string; takes: number },
  outcome: object,
  wake: WakeRun,
  change: (sql: Sql) => Promise<{ rows: unknown[] }>,
): Promise<void> => {
  const ended = await database.transaction(async (sql) => {
    const row = await queryOne<EndedWaits>(sql, endWaitStatement, [order_id, takes, JSON.stringify(outcome)])
    if (row && (await change(sql)).rows.length === 0) throw new PaymentLostError()
    return row
  })
  wakeWaiting(ended, wake)
}

/** Of a run that began while mandates were shown by an order of their own: they are shown by its order to pay, which follows. */
export const finishPresentation = (
  database: TransactionalSql,
  { order_id, takes }: { order_id: string; takes: number },
  wake: WakeRun,
): Promise<void> => {
  const outcome = { status: 'presented', message: 'The mandates are shown as the payment is made.' }
  return endWaitOfOrder(database, { order_id, takes }, outcome, wake, (sql) =>
    sql.query(
      `UPDATE payment_orders SET done_at = clock_timestamp(), outcome = $3::json
       WHERE order_id = $1 AND takes = $2 AND done_at IS NULL RETURNING order_id`,
      [order_id, takes, JSON.stringify(outcome)],
    ),
  )
}

const refuseStatement = `
  WITH mine AS (
    UPDATE payment_orders SET done_at = clock_timestamp(), outcome = $3::json, sealed = NULL
    WHERE order_id = $1 AND takes = $2 AND done_at IS NULL RETURNING *
  ), payment AS (
    INSERT INTO payments (payment_id, tenant, order_id, run_id, plan_seq, call_index, status, version, outcome, receipt, next_at)
    SELECT payment_id, tenant, order_id, run_id, plan_seq, call_index, $4, $5, $3::json, $6, 'infinity' FROM mine
  ), event AS (
    INSERT INTO payment_events (tenant, payment_id, kind, detail) SELECT tenant, payment_id, $7, $8::json FROM mine
  )
  SELECT payment_id FROM mine`

/** Ends an order to pay that never became a reservation. It is a row of its own: a forged token uses up no mandate. */
export const refuseOrder = async (
  database: TransactionalSql,
  { order_id, takes }: { order_id: string; takes: number },
  refused: {
    status: 'declined' | 'released'
    outcome: PaymentOutcome
    version: string | null
    receipt: string | null
    detail: Record<string, unknown>
  },
  wake: WakeRun,
): Promise<void> => {
  const { status, outcome, version, receipt, detail } = refused
  const kind = status === 'declined' ? 'refused' : 'released'
  const order = [order_id, takes, JSON.stringify(outcome)]
  const values = [...order, status, version, receipt, kind, JSON.stringify(detail)]
  await endWaitOfOrder(database, { order_id, takes }, outcome, wake, (sql) =>
    sql.query(refuseStatement, values),
  )
}

/**
 * Ends an order that changes no payment, and says why. A run may wait for what it ordered: the wait ends with what the payment has
 * become, unless it is still under way.
 */
export const finishOrder = async (
  sql: Sql,
  { order_id, takes }: { order_id: string; takes: number },
  outcome: { status: string; message: string },
  wake: WakeRun,
): Promise<void> =>
  wakeWaiting(
    await queryOne<EndedWaits>(
      sql,
      `WITH mine AS (UPDATE payment_orders SET done_at = clock_timestamp(), outcome = $3::json, sealed = NULL
       WHERE order_id = $1 AND takes = $2 AND done_at IS NULL RETURNING order_id, payment_id, tenant, kind
     ), operation AS (
       UPDATE payment_operations o SET status = 'done', request = NULL FROM mine WHERE o.order_id = mine.order_id
     ), event AS (
       INSERT INTO payment_events (tenant, payment_id, kind, detail) SELECT tenant, payment_id, kind || ' refused', $3::json FROM mine
     )
     SELECT p.tenant, p.run_id, end_wait(p.tenant, 'payment', p.payment_id, p.outcome) AS ended FROM payments p JOIN mine USING (payment_id)
     WHERE p.status <> 'sent' AND p.outcome IS NOT NULL`,
      [order_id, takes, JSON.stringify(outcome)],
    ),
    wake,
  )
