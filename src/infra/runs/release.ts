import { openingPatch } from '../../state/opening.ts'
import type { CallRef, Outcome, Question, Sql } from '../../state/ports.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { type Database, one } from '../database/database.ts'
import { newInputRequestId } from '../ids.ts'
import type { Fence } from './append.ts'
import { layAction } from './lay-action.ts'
import { settleRun } from './settle.ts'

/**
 * Ways a worker lets go of a run that has not ended. Each is one fenced statement. False: it was not ours any more, or
 * it is to be cancelled and so must not begin to wait.
 */

/** Parks the run until a person has answered: the question, the status and the lease in one statement. */
export const parkRun = async (
  sql: Sql,
  fence: Fence,
  ask: Question,
  call: CallRef,
  workedMs: number,
): Promise<boolean> => {
  const row = await one(
    sql,
    `WITH mine AS (
       UPDATE runs SET status = 'input_required', stalls = 0, worked_ms = $4, lease_owner = NULL, lease_until = NULL
       WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running' AND cancel_requested_at IS NULL RETURNING run_id
     ), asked AS (
       INSERT INTO input_requests (tenant, request_id, run_id, plan_seq, call_index, question, schema, options, expires_at)
       SELECT $1, $5, $2, $6, $7, $8::json, $9::json, $10::json, clock_timestamp() + $11::double precision * interval '1 millisecond'
       FROM mine ON CONFLICT (tenant, run_id, plan_seq, call_index) DO NOTHING
     ) SELECT run_id FROM mine`,
    [
      fence.tenant,
      fence.run_id,
      fence.epoch,
      Math.round(workedMs),
      newInputRequestId(),
      call.plan_seq,
      call.index,
      JSON.stringify(ask.question),
      JSON.stringify(ask.schema),
      JSON.stringify(ask.options),
      ask.expires_in_ms,
    ],
  )
  return row !== null
}

/**
 * Queues the run again for `runAt` (ISO time): it waits for todos that may be retried then. Never at once: a worker whose
 * clock is behind the database's would find it too early again and again.
 */
export const requeueRun = async (
  sql: Sql,
  fence: Fence,
  runAt: string,
  workedMs: number,
): Promise<boolean> => {
  const row = await one(
    sql,
    `WITH mine AS (
       UPDATE runs SET status = 'queued', stalls = 0, worked_ms = $4,
         run_at = GREATEST($5::timestamptz, clock_timestamp() + interval '250 milliseconds'), lease_owner = NULL, lease_until = NULL
       WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running' AND cancel_requested_at IS NULL RETURNING run_at
     ) INSERT INTO outbox (tenant, run_id, ring_at) SELECT $1, $2, run_at FROM mine RETURNING run_id`,
    [fence.tenant, fence.run_id, fence.epoch, Math.round(workedMs), runAt],
  )
  return row !== null
}

/**
 * Gives the run back untouched, for a worker that is stopping: this claim does not count towards `poison`. One that is
 * to be cancelled is settled on the way, since nobody else may come for it soon.
 */
export const handBackRun = async (database: Database, fence: Fence, workedMs: number): Promise<boolean> =>
  database.transaction(async (sql) => {
    const row = await one<{ cancel_requested: boolean; reason: string | null }>(
      sql,
      `WITH mine AS (
         UPDATE runs SET status = 'queued', stalls = GREATEST(stalls - 1, 0), worked_ms = $4, lease_owner = NULL, lease_until = NULL
         WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running'
         RETURNING run_id, cancel_requested_at IS NOT NULL AS cancel_requested, cancel_reason AS reason
       ), bell AS (INSERT INTO outbox (tenant, run_id) SELECT $1, run_id FROM mine)
       SELECT cancel_requested, reason FROM mine`,
      [fence.tenant, fence.run_id, fence.epoch, Math.round(workedMs)],
    )
    if (row?.cancel_requested)
      await settleRun(sql, fence.tenant, fence.run_id, { status: 'cancelled', reason: row.reason ?? '' })
    return row !== null
  })

/** How long a run waits for a worker that knows the node it stands at, and how often one looks. */
const unknownFor = { patienceMs: 15 * 60_000, everyMs: 5000 }

/**
 * Leaves a run to workers of another version, which know the node that it stands at: `run_at` stays, its lease is put off.
 * False also where it could have been taken for so long already that none of them is there.
 */
export const passRunOn = async (sql: Sql, fence: Fence, workedMs: number): Promise<boolean> => {
  const row = await one(
    sql,
    `WITH mine AS (
       UPDATE runs r SET status = 'queued', stalls = GREATEST(stalls - 1, 0), worked_ms = $4, lease_owner = NULL,
         lease_until = clock_timestamp() + $5::int * interval '1 millisecond'
       WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running' AND cancel_requested_at IS NULL
         AND GREATEST(r.run_at,
           (SELECT a.created_at FROM actions a WHERE a.tenant = r.tenant AND a.session_id = r.session_id AND a.seq = r.next_seq - 1),
           (SELECT max(i.answered_at) FROM input_requests i WHERE i.tenant = r.tenant AND i.run_id = r.run_id)
         ) > clock_timestamp() - $6::int * interval '1 millisecond'
       RETURNING lease_until
     ) INSERT INTO outbox (tenant, run_id, ring_at) SELECT $1, $2, lease_until FROM mine RETURNING run_id`,
    [
      fence.tenant,
      fence.run_id,
      fence.epoch,
      Math.round(workedMs),
      unknownFor.everyMs,
      unknownFor.patienceMs,
    ],
  )
  return row !== null
}

type Poisoned = { session_id: string; turn: number; next_seq: number; is_open: boolean }

/**
 * Ends a run that keeps killing its workers, without reading its session: what that holds may be what kills them. Opens its
 * turn first where no worker got so far. False: it is not ours any more.
 */
export const giveUpRun = async (
  database: Database,
  claim: Fence & { request: AdmittedRequest },
  outcome: Outcome,
): Promise<boolean> =>
  database.transaction(async (sql) => {
    const { tenant, run_id, epoch } = claim
    const mine = await one<Poisoned>(
      sql,
      `SELECT session_id, turn, next_seq, next_seq > first_seq AS is_open FROM runs
       WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running' FOR UPDATE`,
      [tenant, run_id, epoch],
    )
    if (!mine) return false
    if (!mine.is_open) await openTurn(sql, claim, mine)
    await sql.query(
      `UPDATE runs SET status = 'queued', lease_owner = NULL, lease_until = NULL, next_seq = next_seq + $3::int
       WHERE tenant = $1 AND run_id = $2`,
      [tenant, run_id, mine.is_open ? 0 : 1],
    )
    return (await settleRun(sql, tenant, run_id, outcome)) !== null
  })

/** Lays what `load-session` would, as far as the request alone says it; under the epoch that settling comes to. */
const openTurn = (
  sql: Sql,
  { tenant, run_id, epoch, request }: Fence & { request: AdmittedRequest },
  { session_id, turn, next_seq }: Poisoned,
): Promise<unknown> =>
  layAction(
    sql,
    { tenant, run_id, session_id, turn, epoch: epoch + 1, seq: next_seq },
    {
      node: 'load-session',
      summary: `Opened turn ${turn} unread`,
      result: { turn, files: request.files.map((file) => file.name) },
      next: ['end'],
    },
    openingPatch(request, turn),
  )
