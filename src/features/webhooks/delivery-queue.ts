import { type Database, hasRow } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { PushedMessage } from '../push-message.ts'

/** How many messages are in flight at most: in one process, for one business, and to one host of it. */
export const deliveryLimits = { process: 256, business: 32, host: 8 }
/** When a message is sent again whose worker did not say what became of it. */
const claimMs = 30_000

/** A message that this worker sends, with what it says. `attempts` is its fencing token. */
export type DeliveryClaim = Omit<PushedMessage, 'push_id' | 'result'> & {
  url: string
  host: string
  attempts: number
  tries: number
  /** The clock of the database, in seconds since 1970. */
  now_s: number
  allow_private: boolean
  session_id: string | null
  turn: number | null
  user_id: string | null
  finish_reason: string | null
  run_created_at: Date | null
  run_ended_at: Date | null
  /** Of failed runs only. */
  result: { error: { code: string; message: string } | null } | null
  /** The question that a run asks, the payment that it waits for consent to, or the side effect that an operator settles. */
  request_id: string | null
  expires_at: Date | null
  effect_error: string | null
  /** It goes to another agent, in place of the product. */
  push_id: string | null
}

const open = `status IN ('pending', 'sending')`
const openStatement = `SELECT 1 FROM webhook_deliveries WHERE ${open} ORDER BY tenant, host LIMIT 1`

/**
 * Takes due messages: businesses in turn, of each its oldest, and no more of a business or to a host than may be in flight.
 * So a host that is slow, or that a thousand messages wait for, delays no others. The hosts are found one by one along the
 * index, however many messages each has.
 */
const claimStatement = `
  WITH RECURSIVE host AS (
    (SELECT tenant, host FROM webhook_deliveries WHERE ${open} ORDER BY tenant, host LIMIT 1)
    UNION ALL
    SELECT n.tenant, n.host FROM host h CROSS JOIN LATERAL (
      SELECT d.tenant, d.host FROM webhook_deliveries d WHERE d.${open} AND (d.tenant, d.host) > (h.tenant, h.host)
      ORDER BY d.tenant, d.host LIMIT 1) n
  ), busy AS (
    SELECT tenant, host, count(*) AS sending FROM webhook_deliveries
    WHERE status = 'sending' AND due_at > clock_timestamp() GROUP BY tenant, host
  ), candidate AS (
    SELECT h.tenant, q.webhook_id, row_number() OVER (PARTITION BY h.tenant ORDER BY q.due_at) AS nth
    FROM host h LEFT JOIN busy b USING (tenant, host) CROSS JOIN LATERAL (
      SELECT d.webhook_id, d.due_at FROM webhook_deliveries d
      WHERE d.tenant = h.tenant AND d.host = h.host AND d.${open} AND d.due_at <= clock_timestamp()
      ORDER BY d.due_at LIMIT GREATEST(0, ${deliveryLimits.host} - COALESCE(b.sending, 0))) q
  ), pick AS (
    SELECT d.webhook_id FROM candidate c JOIN webhook_deliveries d USING (webhook_id)
    WHERE d.${open} AND d.due_at <= clock_timestamp()
      AND c.nth <= ${deliveryLimits.business} - COALESCE((SELECT sum(b.sending) FROM busy b WHERE b.tenant = c.tenant), 0)
    ORDER BY c.nth LIMIT $1::int FOR UPDATE OF d SKIP LOCKED
  ), mine AS (
    UPDATE webhook_deliveries d SET status = 'sending', attempts = attempts + 1, tries = tries + 1,
      last_attempt_at = clock_timestamp(), due_at = clock_timestamp() + ${claimMs} * interval '1 millisecond'
    FROM pick WHERE d.webhook_id = pick.webhook_id RETURNING d.*
  )
  SELECT m.tenant, m.webhook_id, m.type, m.url, m.host, m.attempts, m.tries, m.created_at, m.request_id, m.run_id, m.push_id,
    floor(extract(epoch FROM clock_timestamp()))::int AS now_s, COALESCE((SELECT s.allow_private FROM webhook_settings s WHERE s.tenant = m.tenant), false) AS allow_private,
    r.session_id, r.turn, q.user_id, r.finish_reason, r.created_at AS run_created_at, r.ended_at AS run_ended_at, q.metadata,
    CASE WHEN m.type = 'run.failed' THEN (SELECT o.result FROM run_results o WHERE o.tenant = m.tenant AND o.run_id = m.run_id) END AS result,
    i.question, COALESCE(i.expires_at, (SELECT c.expires_at FROM list_run_consents(m.tenant, m.run_id) c WHERE c.payment_id = m.request_id)) AS expires_at,
    (SELECT e.error FROM effects e WHERE e.tenant = m.tenant AND e.effect_id = m.request_id) AS effect_error
  FROM mine m LEFT JOIN runs r ON r.tenant = m.tenant AND r.run_id = m.run_id
  LEFT JOIN run_requests q ON q.tenant = m.tenant AND q.run_id = m.run_id LEFT JOIN input_requests i ON i.tenant = m.tenant AND i.request_id = m.request_id`

/** Takes at most `max` messages that are due; this worker sends them at once. */
export const claimDeliveries = async (sql: Sql, max: number): Promise<DeliveryClaim[]> => {
  // each worker asks twice a second, and planning the statement costs more than all else it does
  if (!(await hasRow(sql, openStatement, []))) return []
  return (await sql.query<DeliveryClaim>(claimStatement, [max])).rows
}

/** What became of an attempt. `gone`: the address takes no messages any more. */
export type DeliveryOutcome = { status: number | null } & (
  | { kind: 'delivered' }
  | { kind: 'failed' | 'refused' | 'gone'; error: string }
)

/** Waits after failed attempts; with those of the last day over, the message is dead. */
const waitsS = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600, 36_000]

/** Milliseconds until the next attempt after `tries` failed ones, with a tenth of jitter; null: there is none. */
export const computeRetryMs = (tries: number, random: () => number = Math.random): number | null => {
  const waitS = waitsS[tries - 1]
  return waitS === undefined ? null : Math.round(waitS * 1000 * (0.9 + random() * 0.2))
}

/**
 * Records what became of an attempt and returns the status of the message. Null: another worker has claimed it since, or its
 * run was deleted.
 */
export const settleDelivery = async (
  database: Database,
  claim: DeliveryClaim,
  outcome: DeliveryOutcome,
): Promise<'delivered' | 'pending' | 'dead' | null> => {
  const retryMs = outcome.kind === 'failed' ? computeRetryMs(claim.tries) : null
  const ended = outcome.kind === 'delivered' ? 'delivered' : 'dead'
  const status = retryMs === null ? ended : 'pending'
  const error = outcome.kind === 'delivered' ? null : outcome.error
  const { rows } = await database.query(
    `UPDATE webhook_deliveries SET status = $3::text, due_at = clock_timestamp() + $4::bigint * interval '1 millisecond',
       last_status = $5, last_error = $6, is_gone = $7, ended_at = CASE WHEN $3::text <> 'pending' THEN clock_timestamp() END
     WHERE webhook_id = $1 AND attempts = $2 AND status = 'sending' RETURNING webhook_id`,
    [claim.webhook_id, claim.attempts, status, retryMs ?? 0, outcome.status, error, outcome.kind === 'gone'],
  )
  if (outcome.kind === 'gone')
    await database.query(
      `UPDATE webhook_deliveries SET status = 'dead', last_error = 'not sent: the address has answered 410 Gone', ended_at = clock_timestamp()
       WHERE tenant = $1 AND host = $2 AND url = $3 AND status = 'pending'`,
      [claim.tenant, claim.host, claim.url],
    )
  return rows.length > 0 ? status : null
}
