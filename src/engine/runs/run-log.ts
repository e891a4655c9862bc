import { storeRunBlob } from '../../infra/blobs/blobs.ts'
import { queryOne, type TransactionalSql } from '../../infra/database/database.ts'
import { readSealingKey } from '../../payments/keys/sealed-texts.ts'
import { MasonError } from '../../state/errors.ts'
import type { Outcome } from '../../state/outcome.ts'
import type { PersonAnswer } from '../../state/ports/questions.ts'
import type { LogEntry, RunLog, RunResult } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { type RunFence, toFenceValues } from './claim.ts'
import { performEffect } from './effects.ts'
import { createLeaseLostError } from './leases.ts'
import { readOutageRecord, waitForModel } from './model-outage.ts'
import { leaveToOtherVersion, parkRun, requeueRun } from './release.ts'
import { closeOwnWaits, delayPoll, endOwnWait, startWaits } from './waits.ts'

/** The last action of a run, with the end it brings. */
export type FinalEntry = LogEntry & { outcome: Outcome; result: RunResult }

/** Advances a run that this worker still has and appends the action, in one statement; `beside` is part of it. */
const buildAppendStatement = (beside = '', alsoSet = ''): string => `
  WITH mine AS (
    UPDATE runs SET next_seq = next_seq + 1, stalls = 0, worked_ms = $8, prompt_tokens = prompt_tokens + $9,
      completion_tokens = completion_tokens + $10, total_tokens = total_tokens + $11${alsoSet}
    WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND next_seq = $4 AND status = 'running'
    RETURNING session_id, turn
  )${beside}
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
  SELECT $1, session_id, $4, $2, turn, $3, $5, $6::json, $7::json FROM mine RETURNING seq`

const appendStatement = buildAppendStatement()

/** Apart, since most actions have no effect, and naming that table costs each of them a tenth of a millisecond. */
const appendWithEffectStatement = buildAppendStatement(`, effect AS (
    UPDATE effects SET status = 'succeeded', response = $13::json FROM mine
    WHERE tenant = $1 AND effect_id = $12 AND status = 'sent'
  )`)

/** An append that also ends the run, frees its lease and wakes the next run of its session. */
const finishStatement = buildAppendStatement(
  `, result AS (
    INSERT INTO run_results (tenant, run_id, result) SELECT $1, $2, $14::json FROM mine
  ), wake_up AS (
    INSERT INTO outbox (tenant, run_id)
    SELECT $1, r.run_id FROM runs r JOIN mine ON r.session_id = mine.session_id
    WHERE r.tenant = $1 AND r.turn > mine.turn AND r.status = 'queued' ORDER BY r.turn LIMIT 1
  )`,
  ', status = $12, finish_reason = $13, ended_at = clock_timestamp(), lease_owner = NULL, lease_until = NULL',
)

const toCommonValues = (fence: RunFence, entry: LogEntry): unknown[] => [
  ...toFenceValues(fence),
  entry.seq,
  entry.attempt_id,
  entry.body,
  entry.patch,
  Math.round(entry.worked_ms),
  entry.usage.prompt_tokens,
  entry.usage.completion_tokens,
  entry.usage.total_tokens,
]

/**
 * Commits one action. Resolves once it is durable; throws `lease_lost` when another worker has the run. Safe to repeat
 * when its answer was lost: the same attempt counts once.
 */
export const appendAction = (sql: Sql, fence: RunFence, entry: LogEntry): Promise<void> => {
  const { attempt_id, effect } = entry
  const values = toCommonValues(fence, entry)
  if (!effect) return commitOnce(sql, attempt_id, appendStatement, values)
  values.push(effect.effect_id, JSON.stringify(effect.response))
  return commitOnce(sql, attempt_id, appendWithEffectStatement, values)
}

/** Commits the last action of a run and its end. Same contract as `appendAction`. */
export const finishRun = (sql: Sql, fence: RunFence, entry: FinalEntry): Promise<void> =>
  commitOnce(sql, entry.attempt_id, finishStatement, [
    ...toCommonValues(fence, entry),
    entry.outcome.status,
    entry.outcome.status === 'completed' ? entry.outcome.reason : null,
    JSON.stringify(entry.result),
  ])

/** Sends one statement; when it changed nothing, the attempt id shows whether an earlier try was committed. */
const commitOnce = async (
  sql: Sql,
  attemptId: string,
  statement: string,
  values: readonly unknown[],
): Promise<void> => {
  if (await queryOne(sql, statement, values)) return
  if (await queryOne(sql, 'SELECT seq FROM actions WHERE attempt_id = $1', [attemptId])) return
  throw createLeaseLostError()
}

/**
 * The log of one claimed run: every write under its fence. `sql` repeats statements without an answer, and `checkLease`
 * throws when the lease is too old to act on.
 */
export const createRunLog = (sql: TransactionalSql, fence: RunFence, checkLease?: () => void): RunLog => {
  /** A run with a cancel request must not begin to wait: its worker ends it. */
  const checkOwnership = async (): Promise<void> => {
    const row = await queryOne<{ cancelled: boolean; reason: string | null }>(
      sql,
      `SELECT cancel_requested_at IS NOT NULL AS cancelled, cancel_reason AS reason FROM runs
       WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running'`,
      toFenceValues(fence),
    )
    if (!row) throw createLeaseLostError()
    if (row.cancelled) throw new MasonError('cancelled', row.reason ?? '')
  }
  const orLost = async <T>(written: Promise<T | null>): Promise<T> => {
    const result = await written
    if (result !== null) return result
    await checkOwnership()
    throw createLeaseLostError()
  }
  const releaseRun = async (isReleased: Promise<boolean>): Promise<void> =>
    void (await orLost(isReleased.then((released) => released || null)))
  return {
    append: (entry) => appendAction(sql, fence, entry),
    finish: (entry, outcome, result) => finishRun(sql, fence, { ...entry, outcome, result }),
    park: (questions, workedMs) => orLost(parkRun(sql, fence, questions, workedMs)),
    requeue: (runAt, workedMs) => releaseRun(requeueRun(sql, fence, runAt, workedMs)),
    waitForModel: (outage, maxMs, workedMs) => releaseRun(waitForModel(sql, fence, outage, maxMs, workedMs)),
    startWaits: (call, first, requests) => orLost(startWaits(sql, fence, call, first, requests)),
    endWait: (wait, outcome) => orLost(endOwnWait(sql, fence, wait, outcome)),
    delayPoll: (wait, ms) => releaseRun(delayPoll(sql, fence, wait, ms)),
    closeWaits: () => orLost(closeOwnWaits(sql, fence)),
    readOutage: () => readOutageRecord(sql, fence),
    async passToNewerWorker(workedMs) {
      const isPassed = await leaveToOtherVersion(sql, fence, workedMs)
      if (!isPassed) await checkOwnership()
      return isPassed
    },
    effect: (call, request, signal, { resend } = { resend: false }) =>
      performEffect(sql, fence, call, request, signal, { resend, ...(checkLease && { checkLease }) }),
    async readAnswer(call, { secret } = {}) {
      const row = await queryOne<{ answer: PersonAnswer | null; sealed: string | null }>(
        sql,
        'SELECT answer, sealed FROM input_requests WHERE tenant = $1 AND run_id = $2 AND plan_seq = $3 AND call_index = $4',
        [fence.tenant, fence.run_id, call.plan_seq, call.index],
      )
      if (!row && secret) await readSealingKey(sql)
      return row?.sealed ? { kind: 'answered', answer: row.sealed } : (row?.answer ?? null)
    },
    storeBlob: (bytes) => storeRunBlob(sql, fence, bytes),
  }
}
