import { MasonError } from '../../state/errors.ts'
import type { ActionRow } from '../../state/fold.ts'
import type { LogEntry, PersonAnswer, RunLog, Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import { blobsNamed, holdStored, keepBlob } from '../sessions/blobs.ts'
import { appendAction, type Fence, finishRun } from './append.ts'
import { doEffect } from './effects.ts'
import { parkRun, passRunOn, requeueRun } from './release.ts'
import { leaseLost } from './steady.ts'

/**
 * The log of one claimed run: every write under its fence. `sql` repeats what was not answered, and `checkLease` throws
 * when the lease is too old to act on.
 */
export const createRunLog = (sql: Sql, fence: Fence, checkLease?: () => void): RunLog => {
  /** A run that is to be cancelled does not begin to wait; the worker has it still and ends it. */
  const checkKept = async (): Promise<void> => {
    const kept = await one<{ cancelled: boolean; reason: string | null }>(
      sql,
      `SELECT cancel_requested_at IS NOT NULL AS cancelled, cancel_reason AS reason FROM runs
       WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running'`,
      [fence.tenant, fence.run_id, fence.epoch],
    )
    if (!kept) throw leaseLost()
    if (kept.cancelled) throw new MasonError('cancelled', kept.reason ?? '')
  }
  const leave = async (left: Promise<boolean>): Promise<void> => {
    if (await left) return
    await checkKept()
    throw leaseLost()
  }
  const held = new Set<string>()
  /** Before the action: what it names must not go while it is committed. Most actions name nothing. */
  const hold = async ({ body, patch }: LogEntry): Promise<void> => {
    const named = blobsNamed(body, patch).filter((hash) => !held.has(hash))
    if (named.length === 0) return
    await holdStored(sql, fence, named)
    for (const hash of named) held.add(hash)
  }
  return {
    async append(entry) {
      await hold(entry)
      await appendAction(sql, fence, entry)
    },
    async finish(entry, outcome, result) {
      await hold(entry)
      await finishRun(sql, fence, { ...entry, outcome, result })
    },
    park: (question, call, workedMs) => leave(parkRun(sql, fence, question, call, workedMs)),
    requeue: (runAt, workedMs) => leave(requeueRun(sql, fence, runAt, workedMs)),
    async passOn(workedMs) {
      const isPassed = await passRunOn(sql, fence, workedMs)
      if (!isPassed) await checkKept()
      return isPassed
    },
    effect: (call, request, signal, { resend } = { resend: false }) =>
      doEffect(sql, fence, call, request, signal, { resend, ...(checkLease && { checkLease }) }),
    async answerTo(call) {
      const row = await one<{ answer: PersonAnswer | null }>(
        sql,
        'SELECT answer FROM input_requests WHERE tenant = $1 AND run_id = $2 AND plan_seq = $3 AND call_index = $4',
        [fence.tenant, fence.run_id, call.plan_seq, call.index],
      )
      return row?.answer ?? null
    },
    async keepBlob(bytes) {
      const hash = await keepBlob(sql, fence, bytes)
      held.add(hash)
      return hash
    },
  }
}

/** A long session comes in several answers, so that none of them meets the time limit of a statement. */
const rowsAtOnce = 1000

type Part = { from?: number; columns?: string }

/** The rows of a session in order, from one on (default: the first), up to and with a turn. */
export const readRows = async <Row extends ActionRow = ActionRow>(
  sql: Sql,
  tenant: string,
  sessionId: string,
  upToTurn: number,
  { from = 1, columns = 'seq, turn, body, patch' }: Part = {},
): Promise<Row[]> => {
  const all: Row[] = []
  for (let next = from; ; ) {
    const { rows } = await sql.query<Row>(
      `SELECT ${columns} FROM actions
       WHERE tenant = $1 AND session_id = $2 AND turn <= $3 AND seq >= $4 ORDER BY seq LIMIT $5`,
      [tenant, sessionId, upToTurn, next, rowsAtOnce],
    )
    all.push(...rows)
    const last = rows.at(-1)
    if (!last || rows.length < rowsAtOnce) return all
    next = last.seq + 1
  }
}

export const readBlob = async (sql: Sql, tenant: string, hash: string): Promise<Uint8Array | null> => {
  const row = await one<{ bytes: Uint8Array }>(
    sql,
    'SELECT bytes FROM blobs WHERE tenant = $1 AND sha256 = $2',
    [tenant, hash],
  )
  return row?.bytes ?? null
}
