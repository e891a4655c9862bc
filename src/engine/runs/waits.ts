import { hasRow, queryOne, type TransactionalSql } from '../../infra/database/database.ts'
import { groupBy } from '../../infra/lib/group-by.ts'
import type { OngoingWork } from '../../state/outcome.ts'
import type { CallRef } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { RunWait, WaitOutcome, WaitRef, WaitState } from '../../state/ports/waits.ts'
import { parkedStatusesSql } from '../../state/run-status.ts'
import { type RunFence, toNamedFence } from './claim.ts'

/** The row of the run is locked, so that no other claim comes before what is started is there. */
const fencedRunSql = `mine AS (SELECT run_id FROM runs WHERE tenant = $tenant AND run_id = $run_id AND epoch = $epoch AND status = 'running'`
const thisWaitSql = `w.tenant = $tenant AND w.run_id = $run_id AND w.plan_seq = $plan_seq AND w.call_index = $index AND w.part = $part`

/** Writes the wait, or reads the one that is there; an outcome that is read here cannot be missed any more. */
const startStatement = `
  WITH ${fencedRunSql} AND cancel_requested_at IS NULL FOR SHARE), started AS (
    INSERT INTO waits (tenant, run_id, plan_seq, call_index, part, kind, ref_id, due_at, poll_at)
    SELECT $tenant, run_id, $plan_seq, $index, $part, $kind, $refId,
      clock_timestamp() + $expiresInMs::double precision * interval '1 millisecond', CASE WHEN $isPolled::boolean THEN clock_timestamp() END
    FROM mine ON CONFLICT (tenant, run_id, plan_seq, call_index, part) DO NOTHING RETURNING run_id
  ), seen AS (
    UPDATE waits w SET seen_at = COALESCE(w.seen_at, clock_timestamp()) FROM mine WHERE ${thisWaitSql} AND w.done_at IS NOT NULL
  )
  SELECT true AS is_new, NULL::json AS outcome, $isPolled::boolean AS is_poll_due FROM started UNION ALL
  SELECT false, w.outcome, COALESCE(w.poll_at <= clock_timestamp(), false) FROM waits w, mine
  WHERE ${thisWaitSql} AND NOT EXISTS (SELECT FROM started)`

/** A new one is started; null: the worker no longer has the run, or the run has a cancel request. */
export const startWaits = async (
  database: TransactionalSql,
  fence: RunFence,
  call: CallRef,
  firstPart: number,
  requests: readonly RunWait[],
): Promise<WaitState[] | null> =>
  database.transaction(async (sql) => {
    const states: WaitState[] = []
    for (const [at, { kind, refId, expiresInMs = null, start, poll }] of requests.entries()) {
      const wait = { ...call, part: firstPart + at }
      const values = { ...toWaitValues(fence, wait), kind, refId, expiresInMs, isPolled: poll !== undefined }
      const row = await queryOne<WaitState & { is_new: boolean }>(sql, startStatement, values)
      if (!row) return null
      const { is_new, ...state } = row
      if (is_new) await start?.(sql, wait)
      states.push(state)
    }
    return states
  })

const toWaitValues = (fence: RunFence, { plan_seq, index, part }: WaitRef) => ({
  ...toNamedFence(fence),
  plan_seq,
  index,
  part,
})

const endStatement = `
  WITH ${fencedRunSql} FOR SHARE)
  UPDATE waits w SET outcome = COALESCE(w.outcome, $outcome::json), done_at = COALESCE(w.done_at, clock_timestamp()),
    seen_at = COALESCE(w.seen_at, clock_timestamp()) FROM mine WHERE ${thisWaitSql} RETURNING w.outcome`

/** Ends a wait whose outcome its worker has; resolves with the outcome that counts: the first. Null: as in `startWaits`. */
export const endOwnWait = async (
  sql: Sql,
  fence: RunFence,
  wait: WaitRef,
  outcome: WaitOutcome,
): Promise<WaitOutcome | null> => {
  const values = { ...toWaitValues(fence, wait), outcome: JSON.stringify(outcome) }
  return (await queryOne<{ outcome: WaitOutcome }>(sql, endStatement, values))?.outcome ?? null
}

const delayStatement = `
  WITH ${fencedRunSql} FOR SHARE)
  UPDATE waits w SET poll_at = clock_timestamp() + $ms::double precision * interval '1 millisecond'
  FROM mine WHERE ${thisWaitSql} RETURNING w.part`

/** Has the job polled in `ms`. False: the worker no longer has the run. */
export const delayPoll = async (sql: Sql, fence: RunFence, wait: WaitRef, ms: number): Promise<boolean> =>
  (await queryOne(sql, delayStatement, { ...toWaitValues(fence, wait), ms })) !== null

/** Has a job polled at once, for which something came from outside that names it. False: no run waits for it. */
export const pollJobNow = async (sql: Sql, refId: string): Promise<boolean> =>
  (await queryOne<{ found: boolean }>(sql, 'SELECT poll_job_now($1) AS found', [refId]))?.found === true

/**
 * Closes what a run still waits for that ends: what it ordered is released, or goes on where it was sent, and its waits and
 * questions end. Resolves with what goes on. Inside the transaction that ends the run, or fenced.
 */
export const closeWaits = async (sql: Sql, tenant: string, runId: string): Promise<OngoingWork> => {
  const key = [tenant, runId]
  const ongoing = await sql.query<{ kind: string; id: string }>(
    'SELECT kind, id FROM release_ongoing_work($1, $2)',
    key,
  )
  await sql.query(
    `UPDATE waits SET done_at = clock_timestamp(), seen_at = clock_timestamp(), outcome = '{"status":"cancelled"}'
     WHERE tenant = $1 AND run_id = $2 AND done_at IS NULL`,
    key,
  )
  await sql.query(
    'UPDATE input_requests SET answered_at = clock_timestamp() WHERE tenant = $1 AND run_id = $2 AND answered_at IS NULL',
    key,
  )
  const byKind = groupBy(ongoing.rows, ({ kind }) => kind)
  return Object.fromEntries([...byKind].map(([kind, rows]) => [kind, rows.map(({ id }) => id)]))
}

/** The same for a claimed run that is about to end. Null: the worker no longer has it. */
export const closeOwnWaits = (database: TransactionalSql, fence: RunFence): Promise<OngoingWork | null> =>
  database.transaction(async (sql) => {
    const mine = await hasRow(
      sql,
      `WITH ${fencedRunSql} FOR SHARE) SELECT run_id FROM mine`,
      toNamedFence(fence),
    )
    return mine ? closeWaits(sql, fence.tenant, fence.run_id) : null
  })

/** Parked runs `r` with waits `w` that match; their rows are locked first. */
const queueParkedSql = (condition: string, order: string): string => `
  WITH found AS (
    SELECT w.tenant, w.run_id, w.plan_seq, w.call_index, w.part FROM waits w JOIN runs r USING (tenant, run_id)
    WHERE ${condition} AND r.status IN ${parkedStatusesSql} ORDER BY ${order} LIMIT 100 FOR NO KEY UPDATE OF r SKIP LOCKED
  ), run AS (
    UPDATE runs r SET status = 'queued' FROM found
    WHERE r.tenant = found.tenant AND r.run_id = found.run_id AND r.status IN ${parkedStatusesSql} RETURNING r.tenant, r.run_id
  ), wake_up AS (INSERT INTO outbox (tenant, run_id) SELECT tenant, run_id FROM run)`

const isThisWaitSql = `w.tenant = found.tenant AND w.run_id = found.run_id AND w.plan_seq = found.plan_seq AND w.call_index = found.call_index AND w.part = found.part`
const unseenSql = 'w.done_at IS NOT NULL AND w.seen_at IS NULL'
const dueSql = 'w.done_at IS NULL AND LEAST(w.due_at, w.poll_at) <= clock_timestamp()'
const anyStatement = `SELECT 1 FROM waits w WHERE ${unseenSql} UNION ALL SELECT 1 FROM waits w WHERE ${dueSql} LIMIT 1`

/** The second guard: an end that parking has missed. */
const endedStatement = `${queueParkedSql(unseenSql, 'w.done_at')}
  UPDATE waits w SET seen_at = clock_timestamp() FROM found WHERE ${isThisWaitSql} AND w.seen_at IS NULL RETURNING w.run_id`

/** What is over its time ends as expired; a job that is to be polled stays open. */
const dueStatement = `${queueParkedSql(dueSql, 'LEAST(w.due_at, w.poll_at)')}, expired AS (
    UPDATE waits w SET done_at = clock_timestamp(), seen_at = clock_timestamp(), outcome = '{"status":"expired"}' FROM found
    WHERE ${isThisWaitSql} AND w.done_at IS NULL AND w.due_at <= clock_timestamp()
  ) SELECT run_id FROM run`

/** Queues parked runs again of which a wait has ended unseen, has expired, or is to be polled; returns how many waits. */
export const wakeWaitingRuns = async (sql: Sql): Promise<number> => {
  if (!(await hasRow(sql, anyStatement, []))) return 0
  const ended = await sql.query(endedStatement)
  return ended.rows.length + (await sql.query(dueStatement)).rows.length
}
