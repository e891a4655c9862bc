import { outcomeSummary } from '../../state/outcome.ts'
import type { Outcome, RunResult, Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import { type Laid, layAction } from './lay-action.ts'

export type Settled = { session_id: string; end_seq: number | null }

/**
 * Takes a run that nobody works on away from whoever might; its epoch rises, so that a late worker is fenced off.
 * One that was claimed and handed back before its first action is left to the next worker, which opens its turn first.
 * $5: only while it has never been started and has waited longer than it may.
 */
const takeStatement = `
  UPDATE runs SET epoch = epoch + 1, status = $3, finish_reason = $4, ended_at = clock_timestamp(),
    next_seq = next_seq + 1, lease_owner = NULL, lease_until = NULL
  WHERE tenant = $1 AND run_id = $2 AND status IN ('queued', 'input_required')
    AND (NOT $5::boolean OR (status = 'queued' AND started_at IS NULL AND expires_at <= clock_timestamp()))
    AND (next_seq IS NULL OR next_seq > first_seq)
  RETURNING session_id, turn, epoch, next_seq - 1 AS seq`

/**
 * Ends a queued or waiting run without a worker, with its `end` action if it was ever claimed. Inside the caller's
 * transaction. Null: it is not queued or waiting (any more).
 */
export const settleRun = async (
  sql: Sql,
  tenant: string,
  runId: string,
  outcome: Outcome,
  options: { onlyExpired: boolean } = { onlyExpired: false },
): Promise<Settled | null> => {
  const taken = await one<Omit<Ended, 'tenant' | 'run_id'>>(sql, takeStatement, [
    tenant,
    runId,
    outcome.status,
    outcome.status === 'completed' ? outcome.reason : null,
    options.onlyExpired,
  ])
  if (!taken) return null
  await endRun(sql, { tenant, run_id: runId, ...taken }, outcome)
  await sql.query(
    'UPDATE input_requests SET answered_at = clock_timestamp() WHERE tenant = $1 AND run_id = $2 AND answered_at IS NULL',
    [tenant, runId],
  )
  await sql.query(
    `INSERT INTO outbox (tenant, run_id) SELECT tenant, run_id FROM runs
     WHERE tenant = $1 AND session_id = $2 AND turn > $3 AND status = 'queued' ORDER BY turn LIMIT 1`,
    [tenant, taken.session_id, taken.turn],
  )
  return { session_id: taken.session_id, end_seq: taken.seq }
}

/** A run that has ended in its row; `seq` is the id of its `end` action, null for one that was never claimed. */
type Ended = Omit<Laid, 'seq'> & { seq: number | null }

/** Lays the `end` action and the result of a run that ends without a worker. */
export const endRun = async (sql: Sql, ended: Ended, outcome: Outcome): Promise<void> => {
  const { tenant, run_id, seq } = ended
  if (seq !== null)
    await layAction(
      sql,
      { ...ended, seq },
      {
        node: 'end',
        summary: outcomeSummary(outcome),
        result: { status: outcome.status, reason: outcome.reason },
        next: [],
      },
    )
  const result: RunResult = {
    answer: null,
    output_structure: [],
    error: outcome.status === 'failed' ? JSON.parse(JSON.stringify(outcome.error)) : null,
  }
  await sql.query('INSERT INTO run_results (tenant, run_id, result) VALUES ($1, $2, $3::json)', [
    tenant,
    run_id,
    JSON.stringify(result),
  ])
}
