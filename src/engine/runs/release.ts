import { type Database, hasRow, queryOne, type TransactionalSql } from '../../infra/database/database.ts'
import { newInputRequestId } from '../../infra/lib/ids.ts'
import { createOpeningPatch } from '../../state/opening-patch.ts'
import type { Outcome } from '../../state/outcome.ts'
import type { OpenQuestion } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { type RunFence, toNamedFence } from './claim.ts'
import { appendUnclaimedAction, type ReportRunEnd, type SettledRun, settleRun } from './settlement.ts'

/**
 * Ways in which a worker releases a run that has not ended. Each is one fenced statement. False: the worker no longer has
 * the run, or the run has a cancel request and so must not begin to wait.
 */

/** Both sides lock the row of the run before they look: see decision 85. */
const lockStatement = `SELECT run_id FROM runs WHERE tenant = $tenant AND run_id = $run_id AND epoch = $epoch AND status = 'running' FOR NO KEY UPDATE`

/** Looks at every wait of the run, and at the questions of the calls that ask; each end queues the run once. */
const parkStatement = `
  WITH mine AS (
    UPDATE runs SET stalls = 0, worked_ms = $workedMs, lease_owner = NULL, lease_until = NULL, status = CASE
      WHEN EXISTS (SELECT FROM waits w WHERE w.tenant = $tenant AND w.run_id = $run_id AND w.done_at IS NOT NULL AND w.seen_at IS NULL)
        OR EXISTS (SELECT FROM input_requests i JOIN json_to_recordset($calls::json) AS q(plan_seq int, index int)
          ON i.plan_seq = q.plan_seq AND i.call_index = q.index WHERE i.tenant = $tenant AND i.run_id = $run_id AND i.answered_at IS NOT NULL)
      THEN 'queued' WHEN $plan_seq::int IS NULL THEN 'waiting' ELSE 'input_required' END
    WHERE tenant = $tenant AND run_id = $run_id AND epoch = $epoch AND status = 'running' AND cancel_requested_at IS NULL RETURNING status
  ), seen AS (
    UPDATE waits w SET seen_at = clock_timestamp() FROM mine
    WHERE w.tenant = $tenant AND w.run_id = $run_id AND w.done_at IS NOT NULL AND w.seen_at IS NULL
  ), question AS (
    INSERT INTO input_requests (tenant, request_id, run_id, plan_seq, call_index, question, schema, options, expires_at, secret, payment_id)
    SELECT $tenant, $requestId, $run_id, $plan_seq, $index, $question::json, $schema::json, $options::json,
      clock_timestamp() + $expiresInMs::double precision * interval '1 millisecond', $secret::boolean, $paymentId
    FROM mine WHERE status = 'input_required' ON CONFLICT (tenant, run_id, plan_seq, call_index) DO NOTHING
  ), wake_up AS (INSERT INTO outbox (tenant, run_id) SELECT $tenant, $run_id FROM mine WHERE status = 'queued')
  SELECT status FROM mine`

/**
 * Parks the run until the first of its questions is answered, or a wait has ended: the question, the status and the lease at
 * once. `requeued`: one of them has happened meanwhile. Null: as above.
 */
export const parkRun = (
  database: TransactionalSql,
  fence: RunFence,
  questions: readonly OpenQuestion[],
  workedMs: number,
): Promise<'parked' | 'requeued' | null> =>
  database.transaction(
    async (sql) => {
      const locked = sql.query(lockStatement, toNamedFence(fence))
      const [first] = questions
      const parked = queryOne<{ status: string }>(sql, parkStatement, {
        ...toNamedFence(fence),
        workedMs: Math.round(workedMs),
        calls: JSON.stringify(questions.map(({ call }) => call)),
        requestId: newInputRequestId(),
        plan_seq: first?.call.plan_seq ?? null,
        index: first?.call.index ?? null,
        question: JSON.stringify(first?.question.question ?? null),
        schema: JSON.stringify(first?.question.schema ?? null),
        options: JSON.stringify(first?.question.options ?? null),
        expiresInMs: first?.question.expires_in_ms ?? null,
        secret: first?.question.secret ?? false,
        paymentId: first?.question.payment_id ?? null,
      })
      const [row] = await Promise.all([parked, locked])
      return row && (row.status === 'queued' ? 'requeued' : 'parked')
    },
    { pipelined: true },
  )

/**
 * Queues the run again for `runAt` (ISO time): it waits for todos that may be retried then. At least 250 ms ahead: a worker
 * whose clock is behind that of the database would find it too early again and again.
 */
export const requeueRun = (sql: Sql, fence: RunFence, runAt: string, workedMs: number): Promise<boolean> =>
  hasRow(
    sql,
    `WITH mine AS (
       UPDATE runs SET status = 'queued', stalls = 0, worked_ms = $workedMs,
         run_at = GREATEST($runAt::timestamptz, clock_timestamp() + interval '250 milliseconds'), lease_owner = NULL, lease_until = NULL
       WHERE tenant = $tenant AND run_id = $run_id AND epoch = $epoch AND status = 'running' AND cancel_requested_at IS NULL
       RETURNING run_at
     ) INSERT INTO outbox (tenant, run_id, ring_at) SELECT $tenant, $run_id, run_at FROM mine RETURNING run_id`,
    { ...toNamedFence(fence), workedMs: Math.round(workedMs), runAt },
  )

/**
 * Queues the run again unchanged, for a worker that is stopping: this claim does not count towards `poison`. A run with a
 * cancel request is settled here, since no other worker may claim it soon; `onEnded` is then called.
 */
export const handBackRun = async (
  database: Database,
  fence: RunFence,
  workedMs: number,
  onEnded?: ReportRunEnd,
): Promise<boolean> => {
  const { isMine, settled } = await database.transaction(async (sql) => {
    const row = await queryOne<{ cancel_requested: boolean; reason: string | null }>(
      sql,
      `WITH mine AS (
         UPDATE runs SET status = 'queued', stalls = GREATEST(stalls - 1, 0), worked_ms = $workedMs, lease_owner = NULL, lease_until = NULL
         WHERE tenant = $tenant AND run_id = $run_id AND epoch = $epoch AND status = 'running'
         RETURNING run_id, cancel_requested_at IS NOT NULL AS cancel_requested, cancel_reason AS reason
       ), wake_up AS (INSERT INTO outbox (tenant, run_id) SELECT $tenant, run_id FROM mine)
       SELECT cancel_requested, reason FROM mine`,
      { ...toNamedFence(fence), workedMs: Math.round(workedMs) },
    )
    const end = { status: 'cancelled' as const, reason: row?.reason ?? '' }
    const settled = row?.cancel_requested ? await settleRun(sql, fence.tenant, fence.run_id, end) : null
    return { isMine: row !== null, settled }
  })
  if (settled) onEnded?.(settled)
  return isMine
}

/** How long a run waits for a worker that knows its next node, and how often workers try. */
const unknownNodeWait = { patienceMs: 15 * 60_000, everyMs: 5000 }

/**
 * Releases a run to workers of another version, which know its next node: `run_at` stays, its lease ends later. False also
 * when it was due for so long that no such worker exists.
 */
export const leaveToOtherVersion = (sql: Sql, fence: RunFence, workedMs: number): Promise<boolean> =>
  hasRow(
    sql,
    `WITH mine AS (
       UPDATE runs r SET status = 'queued', stalls = GREATEST(stalls - 1, 0), worked_ms = $workedMs, lease_owner = NULL,
         lease_until = clock_timestamp() + $everyMs::int * interval '1 millisecond'
       WHERE tenant = $tenant AND run_id = $run_id AND epoch = $epoch AND status = 'running' AND cancel_requested_at IS NULL
         AND GREATEST(r.run_at,
           (SELECT a.created_at FROM actions a WHERE a.tenant = r.tenant AND a.session_id = r.session_id AND a.seq = r.next_seq - 1),
           (SELECT max(i.answered_at) FROM input_requests i WHERE i.tenant = r.tenant AND i.run_id = r.run_id),
           (SELECT max(GREATEST(w.done_at, w.poll_at)) FROM waits w WHERE w.tenant = r.tenant AND w.run_id = r.run_id)
         ) > clock_timestamp() - $patienceMs::int * interval '1 millisecond'
       RETURNING lease_until
     ) INSERT INTO outbox (tenant, run_id, ring_at) SELECT $tenant, $run_id, lease_until FROM mine RETURNING run_id`,
    { ...toNamedFence(fence), ...unknownNodeWait, workedMs: Math.round(workedMs) },
  )

type PoisonedRun = { session_id: string; turn: number; next_seq: number; is_open: boolean }

/**
 * Ends a run that keeps killing its workers, without reading its session, which may be what kills them. Opens its turn
 * first if no worker got that far. Null: the worker no longer has the run.
 */
export const failPoisonedRun = async (
  database: Database,
  claim: RunFence & { request: AdmittedRequest },
  outcome: Outcome,
): Promise<SettledRun | null> =>
  database.transaction(async (sql) => {
    const { tenant, run_id } = claim
    const mine = await queryOne<PoisonedRun>(
      sql,
      `SELECT session_id, turn, next_seq, next_seq > first_seq AS is_open FROM runs
       WHERE tenant = $tenant AND run_id = $run_id AND epoch = $epoch AND status = 'running' FOR UPDATE`,
      toNamedFence(claim),
    )
    if (!mine) return null
    if (!mine.is_open) await openTurn(sql, claim, mine)
    await sql.query(
      `UPDATE runs SET status = 'queued', lease_owner = NULL, lease_until = NULL, next_seq = next_seq + $opened::int
       WHERE tenant = $tenant AND run_id = $run_id`,
      { tenant, run_id, opened: mine.is_open ? 0 : 1 },
    )
    return settleRun(sql, tenant, run_id, outcome)
  })

/** Appends what `load-session` would, as far as the request alone determines it; under the epoch of the settlement. */
const openTurn = (
  sql: Sql,
  { tenant, run_id, epoch, request }: RunFence & { request: AdmittedRequest },
  { session_id, turn, next_seq }: PoisonedRun,
): Promise<unknown> =>
  appendUnclaimedAction(
    sql,
    { tenant, run_id, session_id, turn, epoch: epoch + 1, seq: next_seq },
    {
      node: 'load-session',
      summary: `Opened turn ${turn} unread`,
      result: { turn, files: request.files.map((file) => file.name) },
      next: ['end'],
    },
    createOpeningPatch(request, turn),
  )
