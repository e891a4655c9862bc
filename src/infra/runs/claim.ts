import type { Sql } from '../../state/ports.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { one } from '../database/database.ts'

/** A worker's right to one run: valid while the database holds this epoch. */
export type Claim = {
  tenant: string
  run_id: string
  session_id: string
  turn: number
  user_id: string
  epoch: number
  next_seq: number
  /** Claims without one new action, this one included. */
  stalls: number
  worked_ms: number
  cancel_requested: boolean
  request: AdmittedRequest
}

/** Claims without a new action after which a run is given up as `poison`. */
export const maxStalls = 5

/**
 * Picks the run whose turn it is: businesses in the order of their last claim, below their concurrency; within one
 * the highest priority, then the oldest; of a session only its earliest unfinished turn. `b.claims = c.claims` makes
 * two claims at one moment exclude each other, so that a concurrency limit holds exactly.
 */
const claimStatement = `
  WITH RECURSIVE open_business AS (
    (SELECT tenant FROM runs WHERE status IN ('queued', 'running') ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant FROM runs r WHERE r.status IN ('queued', 'running') AND r.tenant > o.tenant ORDER BY r.tenant LIMIT 1)
    FROM open_business o WHERE o.tenant IS NOT NULL
  ), candidate AS (
    SELECT b.tenant, b.claims, b.last_claimed_at, due.run_id, due.nth
    FROM open_business o JOIN businesses b ON b.tenant = o.tenant
    CROSS JOIN LATERAL (
      SELECT r.run_id, row_number() OVER (ORDER BY r.priority DESC, r.run_at, r.run_id) AS nth FROM runs r
      WHERE r.tenant = b.tenant AND r.status IN ('queued', 'running') AND r.run_at <= clock_timestamp()
        AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
        AND NOT EXISTS (SELECT FROM runs e WHERE e.tenant = r.tenant AND e.session_id = r.session_id
          AND e.turn < r.turn AND e.status IN ('queued', 'running', 'input_required'))
      ORDER BY r.priority DESC, r.run_at, r.run_id LIMIT 4
    ) due
    WHERE b.max_concurrency IS NULL OR b.max_concurrency > (
      SELECT count(*) FROM runs w WHERE w.tenant = b.tenant AND w.status = 'running' AND w.lease_until > clock_timestamp())
  ), pick AS (
    SELECT r.tenant, r.run_id FROM candidate c
    JOIN businesses b ON b.tenant = c.tenant AND b.claims = c.claims
    JOIN runs r ON r.tenant = c.tenant AND r.run_id = c.run_id
    WHERE r.status IN ('queued', 'running') AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
    ORDER BY c.last_claimed_at NULLS FIRST, c.nth LIMIT 1 FOR UPDATE OF b, r SKIP LOCKED
  ), served AS (
    UPDATE businesses b SET claims = claims + 1, last_claimed_at = clock_timestamp() FROM pick WHERE b.tenant = pick.tenant
  ), rung AS (
    DELETE FROM outbox o USING pick WHERE o.tenant = pick.tenant AND o.run_id = pick.run_id
  ), claimed AS (
    UPDATE runs r SET status = 'running', epoch = epoch + 1, stalls = stalls + 1, lease_owner = $1,
      lease_until = clock_timestamp() + $2::int * interval '1 millisecond',
      started_at = COALESCE(started_at, clock_timestamp()),
      next_seq = COALESCE(next_seq, (SELECT COALESCE(max(seq), 0) + 1 FROM actions a WHERE a.tenant = r.tenant AND a.session_id = r.session_id))
    FROM pick WHERE r.tenant = pick.tenant AND r.run_id = pick.run_id
    RETURNING r.*
  )
  SELECT c.tenant, c.run_id, c.session_id, c.turn, q.user_id, c.epoch, c.next_seq, c.stalls, c.worked_ms,
    c.cancel_requested_at IS NOT NULL AS cancel_requested, q.request,
    EXISTS (SELECT FROM candidate) AS contended
  FROM (SELECT) always LEFT JOIN claimed c ON true LEFT JOIN run_requests q ON q.tenant = c.tenant AND q.run_id = c.run_id`

/**
 * Takes the lease on the run whose turn it is, or null when none is due. Safe to call at any time, from anywhere.
 * `leaseMs` is how long the lease lasts without a heartbeat.
 */
export const claimNext = async (sql: Sql, workerId: string, leaseMs: number): Promise<Claim | null> => {
  for (let attempt = 0; attempt < 5; attempt++) {
    const row = await one<Partial<Claim> & { contended: boolean }>(sql, claimStatement, [workerId, leaseMs])
    if (row?.run_id) return row as Claim
    // something is due, but another worker holds its business at this very moment: look again
    if (!row?.contended) return null
  }
  return null
}
