import { toCountClaimSql } from '../../accounts/businesses.ts'
import type { ClaimedRun } from '../../graph/live-run.ts'
import { type Database, queryOne, type RunKey, sendFirst } from '../../infra/database/database.ts'
import type { PersonAnswer } from '../../state/ports/questions.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { openStatusesSql } from '../../state/run-status.ts'
import type { Json } from '../../state/runtime-state.ts'

/** Every write of a worker names the run and the epoch under which it was claimed. */
export type RunFence = RunKey & {
  epoch: number
  /** The worker whose claim it is. */
  worker_id?: string
}

/** The first three values of every fenced statement. */
export const toFenceValues = ({ tenant, run_id, epoch }: RunFence) => [tenant, run_id, epoch] as const

/** The same for a statement with names. */
export const toNamedFence = ({ tenant, run_id, epoch }: RunFence) => ({ tenant, run_id, epoch })

type Asked = { answer: PersonAnswer | null; sealed: string | null }

/** A worker's right to one run: valid while the database holds this epoch. */
export type RunClaim = RunFence &
  Omit<ClaimedRun, 'business_id' | 'state'> & {
    /** Claims without one new action, this one included. */
    stalls: number
    /** Milliseconds from when it was due, and the turn before it had ended, to its first claim; null at later ones. */
    waited_ms: number | null
    /** Of its user, at its first claim; null at later ones. */
    profile: Record<string, Json> | null
    /** What its calls have asked, each with its answer, of which a secret one is encrypted; null at its first claim. */
    questions: (Asked & { plan_seq: number; call_index: number })[] | null
    cancel_requested: boolean
    cancel_reason: string | null
  }

/** Claims without a new action after which a run fails as `poison`. */
export const maxStalls = 5

/** Businesses that a claim passes over, those that come after all others, and whether it takes suspects too. */
export type ClaimOrder = { excluded: readonly string[]; last: readonly string[]; takesSuspects: boolean }

/** Claims without a new action after which a run is suspected of ending its workers. */
export const suspectStalls = 2
const anyOrder: ClaimOrder = { excluded: [], last: [], takesSuspects: true }

const nextSeqSql = `(SELECT COALESCE(max(seq), 0) + 1 FROM actions a WHERE a.tenant = r.tenant AND a.session_id = r.session_id)`

/**
 * Picks the run whose turn it is: businesses in the order of their last claim, below their concurrency, without those of $4
 * and last those of $5; within one the highest priority, then the oldest; of a session only its earliest unfinished turn. `b.claims = c.claims` makes
 * concurrent claims exclude each other, so that a concurrency limit holds exactly. The lock lets other transactions
 * reference the business meanwhile, as every admission does. A business without a limit that alone has open runs needs neither
 * order nor count: its row is not written.
 */
const claimStatement = `
  WITH RECURSIVE open_business AS (
    (SELECT tenant FROM runs WHERE status IN ('queued', 'running') ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant FROM runs r WHERE r.status IN ('queued', 'running') AND r.tenant > o.tenant ORDER BY r.tenant LIMIT 1)
    FROM open_business o WHERE o.tenant IS NOT NULL
  ), candidate AS (
    SELECT b.tenant, b.claims, b.is_last, b.last_claimed_at, due.run_id, due.nth
    FROM (
      SELECT b.*, b.tenant IN (SELECT json_array_elements_text($5::json)) AS is_last
      FROM open_business o JOIN businesses b ON b.tenant = o.tenant
      WHERE b.tenant NOT IN (SELECT json_array_elements_text($4::json)) AND (b.max_concurrency IS NULL OR b.max_concurrency > (
        SELECT count(*) FROM runs w WHERE w.tenant = b.tenant AND w.status = 'running' AND w.lease_until > clock_timestamp()))
      ORDER BY is_last, b.last_claimed_at NULLS FIRST
    ) b
    CROSS JOIN LATERAL (
      SELECT q.run_id, row_number() OVER () AS nth FROM (
        SELECT r.run_id FROM runs r
        WHERE r.tenant = b.tenant AND r.status IN ('queued', 'running') AND r.run_at <= clock_timestamp()
          AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp()) AND ($6::boolean OR r.stalls < ${suspectStalls})
          AND r.turn = (SELECT e.turn FROM runs e WHERE e.tenant = r.tenant AND e.session_id = r.session_id
            AND e.status IN ${openStatusesSql} ORDER BY e.turn LIMIT 1)
        ORDER BY r.priority DESC, r.run_at, r.run_id LIMIT 4) q
    ) due
    LIMIT 32
  ), pick AS (
    SELECT r.tenant, r.run_id FROM candidate c
    JOIN businesses b ON b.tenant = c.tenant AND b.claims = c.claims
    JOIN runs r ON r.tenant = c.tenant AND r.run_id = c.run_id
    WHERE r.status IN ('queued', 'running') AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
    ORDER BY c.is_last, c.last_claimed_at NULLS FIRST, c.nth LIMIT 1 FOR NO KEY UPDATE OF b, r SKIP LOCKED
  ), served AS (
    ${toCountClaimSql('pick')}
      AND (b.max_concurrency IS NOT NULL OR (SELECT count(tenant) FROM open_business) > 1)
  ), woken AS (
    DELETE FROM outbox WHERE outbox_id IN (
      SELECT o.outbox_id FROM outbox o JOIN pick ON o.tenant = pick.tenant AND o.run_id = pick.run_id FOR UPDATE OF o SKIP LOCKED)
  ), claimed AS (
    UPDATE runs r SET status = 'running', epoch = epoch + 1, stalls = stalls + 1, lease_owner = $1,
      graph_version = COALESCE($3, graph_version),
      lease_until = clock_timestamp() + $2::int * interval '1 millisecond',
      started_at = COALESCE(started_at, clock_timestamp()),
      first_seq = COALESCE(first_seq, ${nextSeqSql}), next_seq = COALESCE(next_seq, ${nextSeqSql})
    FROM pick WHERE r.tenant = pick.tenant AND r.run_id = pick.run_id
    RETURNING r.*
  )
  SELECT c.tenant, c.run_id, c.session_id, c.turn, q.user_id, c.epoch, c.next_seq, c.stalls, c.worked_ms,
    c.cancel_requested_at IS NOT NULL AS cancel_requested, c.cancel_reason, q.request,
    CASE WHEN c.epoch = 1 THEN round(extract(epoch FROM c.started_at - GREATEST(c.run_at, (SELECT p.ended_at FROM runs p
      WHERE p.tenant = c.tenant AND p.session_id = c.session_id AND p.turn = c.turn - 1))) * 1000)::int8 END AS waited_ms,
    CASE WHEN c.epoch = 1 THEN COALESCE((SELECT u.profile FROM users u WHERE u.tenant = c.tenant AND u.user_id = q.user_id), '{}') END AS profile,
    CASE WHEN c.epoch > 1 THEN (SELECT json_agg(i) FROM (SELECT plan_seq, call_index, answer, sealed FROM input_requests WHERE tenant = c.tenant AND run_id = c.run_id) i) END AS questions,
    EXISTS (SELECT FROM candidate) AS contended
  FROM (SELECT) always LEFT JOIN claimed c ON true LEFT JOIN run_requests q ON q.tenant = c.tenant AND q.run_id = c.run_id`

type ClaimRow = Partial<RunClaim> & { contended: boolean }

/** With more concurrent claimers than this, the reconciler wakes workers for the rest. */
const maxClaimAttempts = 20

/**
 * Takes the lease on the run whose turn it is, or null when none is due. Safe to call at any time, from anywhere.
 * `leaseMs` is how long the lease lasts without a heartbeat.
 */
export const claimNextRun = async (
  database: Database,
  workerId: string,
  leaseMs: number,
  graphVersion: string | null = null,
  { excluded, last, takesSuspects }: ClaimOrder = anyOrder,
): Promise<RunClaim | null> => {
  const listed = [JSON.stringify(excluded), JSON.stringify(last)]
  const values = [workerId, leaseMs, graphVersion, ...listed, takesSuspects]
  const tryClaim = (sql: Sql) => queryOne<ClaimRow>(sql, claimStatement, values)
  let row = await tryClaim(database)
  // a run is due, but another worker holds its business: try again, one worker at a time. The lock is not waited for
  // first, or a process that is frozen while it holds the lock would keep all others from claiming
  for (let attempt = 1; row && !row.run_id && row.contended && attempt < maxClaimAttempts; attempt++)
    row = await database.transaction(
      sendFirst(`SELECT pg_advisory_xact_lock(hashtext('mason.claim'))`, [], tryClaim),
      { pipelined: true },
    )
  return row?.run_id ? (row as RunClaim) : null
}
