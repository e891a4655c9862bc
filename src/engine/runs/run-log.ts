import { storeRunBlob } from '../../files/blobs/blobs.ts'
import { queryOne, type TransactionalSql } from '../../infra/database/database.ts'
import { MasonError } from '../../state/errors.ts'
import type { LogEntry, RunLog } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { RunWait, WaitState } from '../../state/ports/waits.ts'
import type { AppendBatches } from './append-batches.ts'
import { type Append, type FinalEntry, toAppendRow, toAppendStatement } from './append-statements.ts'
import { type RunClaim, type RunFence, toFenceValues } from './claim.ts'
import { performEffect } from './effects.ts'
import { createLeaseLostError, type LeaseGuard } from './leases.ts'
import { readOutageRecord, waitForModel } from './model-outage.ts'
import { leaveToOtherVersion, parkRun, requeueRun } from './release.ts'
import { noSecretAnswers, type SecretAnswers } from './secret-answers.ts'
import { closeOwnWaits, delayPoll, endOwnWait, startWaits } from './waits.ts'

/** Calls `onStarted` of the waits that have no outcome yet: those that have one were started before. */
export const reportStarted = (requests: readonly RunWait[], states: readonly WaitState[]): void => {
  for (const [at, { onStarted }] of requests.entries()) if (states[at]?.outcome == null) onStarted?.()
}

/**
 * Commits one action, or with a `FinalEntry` the last one and the end of its run. Resolves once it is durable; throws
 * `lease_lost` when another worker has the run. Safe to repeat when its answer was lost: the same attempt counts once.
 */
export const appendAlone = async (sql: Sql, append: Append): Promise<void> => {
  if (await queryOne(sql, ...toAppendStatement(append, { waits: true }))) return
  const { attempt_id } = append.row
  if (await queryOne(sql, 'SELECT seq FROM actions WHERE attempt_id = $1', [attempt_id])) return
  throw createLeaseLostError()
}

/** How a worker holds a run: its lease, and the appends that its run shares with others. */
type HeldRun = { lease: LeaseGuard; appendTogether: AppendBatches }

/** The log of one claimed run: every write under its fence. `sql` repeats statements without an answer. Questions of this claim have no answers yet: parking sees those. */
export const createRunLog = (
  sql: TransactionalSql,
  claim: RunFence & Partial<Pick<RunClaim, 'questions'>>,
  held?: HeldRun,
  secretAnswers: SecretAnswers = noSecretAnswers,
): RunLog => {
  const append = async (entry: LogEntry | FinalEntry): Promise<void> => {
    const row = toAppendRow(claim, entry)
    if (!(await held?.appendTogether(row, held.lease))) await appendAlone(sql, row)
  }
  /** A run with a cancel request must not begin to wait: its worker ends it. */
  const checkOwnership = async (): Promise<void> => {
    const row = await queryOne<{ cancelled: boolean; reason: string | null }>(
      sql,
      `SELECT cancel_requested_at IS NOT NULL AS cancelled, cancel_reason AS reason FROM runs
       WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running'`,
      toFenceValues(claim),
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
    append,
    finish: (entry, outcome, result) => append({ ...entry, outcome, result }),
    park: (questions, workedMs) => orLost(parkRun(sql, claim, questions, workedMs)),
    requeue: (runAt, workedMs) => releaseRun(requeueRun(sql, claim, runAt, workedMs)),
    waitForModel: (outage, maxMs, workedMs) => releaseRun(waitForModel(sql, claim, outage, maxMs, workedMs)),
    async startWaits(call, first, requests) {
      const states = await orLost(startWaits(sql, claim, call, first, requests))
      reportStarted(requests, states)
      return states
    },
    endWait: (wait, outcome) => orLost(endOwnWait(sql, claim, wait, outcome)),
    delayPoll: (wait, ms) => releaseRun(delayPoll(sql, claim, wait, ms)),
    closeWaits: () => orLost(closeOwnWaits(sql, claim)),
    readOutage: () => readOutageRecord(sql, claim),
    async passToNewerWorker(workedMs) {
      const isPassed = await leaveToOtherVersion(sql, claim, workedMs)
      if (!isPassed) await checkOwnership()
      return isPassed
    },
    effect: (call, request, signal, options) =>
      performEffect(sql, claim, call, request, signal, {
        ...options,
        ...(held && { checkLease: held.lease.check }),
      }),
    async readAnswer({ plan_seq, index }, { secret, payment_id } = {}) {
      const row = claim.questions?.find((one) => one.plan_seq === plan_seq && one.call_index === index)
      if (!row && secret) {
        if (!payment_id)
          throw new MasonError('invalid_request', 'a secret question names no payment', {
            remedy: 'set payment_id of the question: the answer is encrypted for that payment alone',
          })
        await secretAnswers.checkReady(sql)
      }
      return row?.sealed ? { kind: 'answered', answer: row.sealed } : (row?.answer ?? null)
    },
    storeBlob: (bytes) => storeRunBlob(sql, claim, bytes),
  }
}
