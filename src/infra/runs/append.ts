import type { LogEntry, Outcome, RunResult, Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import { leaseLost } from './steady.ts'

/** The fence: every write names the run and the epoch under which it was claimed. */
export type Fence = { tenant: string; run_id: string; epoch: number }

export type Finish = LogEntry & { outcome: Outcome; result: RunResult }

/** Advances the run where it is still ours and lays the action, in one statement; `beside` happens with it or not at all. */
const appendWith = (beside: string): string => `
  WITH mine AS (
    UPDATE runs SET next_seq = next_seq + 1, stalls = 0, worked_ms = $8, prompt_tokens = prompt_tokens + $9,
      completion_tokens = completion_tokens + $10, total_tokens = total_tokens + $11
    WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND next_seq = $4 AND status = 'running'
    RETURNING session_id, turn
  )${beside}
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
  SELECT $1, session_id, $4, $2, turn, $3, $5, $6::json, $7::json FROM mine RETURNING seq`

const appendStatement = appendWith('')

/** Most actions have no effect, and naming its table alone costs each of them a tenth of a millisecond. */
const appendWithEffectStatement = appendWith(`, effect AS (
    UPDATE effects SET status = 'succeeded', response = $13::json FROM mine
    WHERE tenant = $1 AND effect_id = $12 AND status = 'sent'
  )`)

/** An append that also ends the run, frees its lease and rings the next run of its session. */
const finishStatement = `
  WITH mine AS (
    UPDATE runs SET next_seq = next_seq + 1, stalls = 0, worked_ms = $8, prompt_tokens = prompt_tokens + $9,
      completion_tokens = completion_tokens + $10, total_tokens = total_tokens + $11,
      status = $12, finish_reason = $13, ended_at = clock_timestamp(), lease_owner = NULL, lease_until = NULL
    WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND next_seq = $4 AND status = 'running'
    RETURNING session_id, turn
  ), result AS (
    INSERT INTO run_results (tenant, run_id, result) SELECT $1, $2, $14::json FROM mine
  ), bell AS (
    INSERT INTO outbox (tenant, run_id)
    SELECT $1, r.run_id FROM runs r JOIN mine ON r.session_id = mine.session_id
    WHERE r.tenant = $1 AND r.turn > mine.turn AND r.status = 'queued' ORDER BY r.turn LIMIT 1
  )
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
  SELECT $1, session_id, $4, $2, turn, $3, $5, $6::json, $7::json FROM mine RETURNING seq`

const commonValues = (fence: Fence, entry: LogEntry): unknown[] => [
  fence.tenant,
  fence.run_id,
  fence.epoch,
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
export const appendAction = (sql: Sql, fence: Fence, entry: LogEntry): Promise<void> => {
  const { attempt_id, effect } = entry
  const values = commonValues(fence, entry)
  if (!effect) return commit(sql, attempt_id, appendStatement, values)
  values.push(effect.effect_id, JSON.stringify(effect.response))
  return commit(sql, attempt_id, appendWithEffectStatement, values)
}

/** Commits the run's last action and its end. Same promises as `appendAction`. */
export const finishRun = (sql: Sql, fence: Fence, entry: Finish): Promise<void> =>
  commit(sql, entry.attempt_id, finishStatement, [
    ...commonValues(fence, entry),
    entry.outcome.status,
    entry.outcome.status === 'completed' ? entry.outcome.reason : null,
    JSON.stringify(entry.result),
  ])

/** One statement; when it did nothing, its attempt id tells whether an earlier try did it all. */
const commit = async (
  sql: Sql,
  attemptId: string,
  statement: string,
  values: readonly unknown[],
): Promise<void> => {
  if (await one(sql, statement, values)) return
  if (await one(sql, 'SELECT seq FROM actions WHERE attempt_id = $1', [attemptId])) return
  throw leaseLost()
}
