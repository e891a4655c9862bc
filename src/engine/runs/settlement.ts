import { type Database, queryOne } from '../../infra/database/database.ts'
import { newAttemptId } from '../../infra/lib/ids.ts'
import { fillAction } from '../../state/checkpoint.ts'
import { MasonError } from '../../state/errors.ts'
import type { OngoingWork, Outcome } from '../../state/outcome.ts'
import { summarizeOutcome, toEndResult } from '../../state/outcome.ts'
import type { Patch } from '../../state/patch.ts'
import type { RunResult } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { openStatusesSql } from '../../state/run-status.ts'
import type { ActionBody } from '../../state/runtime-state.ts'
import { countTodos, listOpenTodos } from '../../state/todos.ts'
import { type RunFence, toFenceValues } from './claim.ts'
import { readRunTodos } from './run-queries.ts'
import { closeWaits } from './waits.ts'

/** A run that ended, as the log and the metrics report it: its actions and tokens, and the milliseconds of work on it. */
export type RunEnd = {
  run_id: string
  business_id: string
  outcome: Outcome
  actions: number
  tokens: number
  ms: number
}

/** Is called once a run has ended, after the commit. */
export type ReportRunEnd = (end: RunEnd) => void

/** A run that ended without a worker. `end_seq`: the id of its `end` action, null when it was never claimed. */
export type SettledRun = RunEnd & { session_id: string; end_seq: number | null }

/**
 * Ends a run that no worker has; its epoch rises, so that a late worker is fenced off. A run that was claimed and handed
 * back before its first action stays for the next worker, which opens its turn first.
 * $5: only while it has never been started and has waited longer than it may.
 */
const settleStatement = `
  UPDATE runs SET epoch = epoch + 1, status = $3, finish_reason = $4, ended_at = clock_timestamp(),
    next_seq = next_seq + 1, lease_owner = NULL, lease_until = NULL
  WHERE tenant = $1 AND run_id = $2 AND status IN ('queued', 'input_required', 'waiting')
    AND (NOT $5::boolean OR (status = 'queued' AND started_at IS NULL AND expires_at <= clock_timestamp()))
    AND (next_seq IS NULL OR next_seq > first_seq)
  RETURNING session_id, turn, epoch, next_seq - 1 AS seq, COALESCE(next_seq - first_seq, 0) AS actions,
    total_tokens AS tokens, worked_ms AS ms`

/**
 * Ends a queued or waiting run without a worker, with its `end` action if it was ever claimed. Inside the caller's
 * transaction. Null: it is not queued or waiting.
 */
export const settleRun = async (
  sql: Sql,
  businessId: string,
  runId: string,
  outcome: Outcome,
  options: { onlyExpired: boolean } = { onlyExpired: false },
): Promise<SettledRun | null> => {
  const taken = await queryOne<SettledRow>(sql, settleStatement, [
    businessId,
    runId,
    outcome.status,
    outcome.status === 'completed' ? outcome.reason : null,
    options.onlyExpired,
  ])
  if (!taken) return null
  const { actions, tokens, ms, ...ended } = taken
  const ongoing = await closeWaits(sql, businessId, runId)
  await writeRunEnd(sql, { tenant: businessId, run_id: runId, ...ended }, outcome, ongoing)
  await sql.query(
    `INSERT INTO outbox (tenant, run_id) SELECT tenant, run_id FROM runs
     WHERE tenant = $1 AND session_id = $2 AND turn > $3 AND status = 'queued' ORDER BY turn LIMIT 1`,
    [businessId, taken.session_id, taken.turn],
  )
  const end = { run_id: runId, business_id: businessId, outcome, actions, tokens, ms }
  return { ...end, session_id: taken.session_id, end_seq: taken.seq }
}

/** A run that has ended in its row; `seq` is the id of its `end` action, null for one that was never claimed. */
type EndedRun = Omit<ActionPosition, 'seq'> & { seq: number | null }
type SettledRow = Omit<EndedRun, 'tenant' | 'run_id'> & Pick<RunEnd, 'actions' | 'tokens' | 'ms'>

/** Appends the `end` action and stores the result of a run that ends without a worker. `ongoing` goes on without it. */
export const writeRunEnd = async (
  sql: Sql,
  ended: EndedRun,
  outcome: Outcome,
  ongoing: OngoingWork = {},
): Promise<void> => {
  const { tenant, run_id, seq } = ended
  const todos = await readRunTodos(sql, tenant, run_id)
  const open_todos = listOpenTodos(todos)
  if (seq !== null)
    await appendUnclaimedAction(
      sql,
      { ...ended, seq },
      {
        node: 'end',
        summary: summarizeOutcome(outcome, ongoing),
        result: toEndResult(outcome, open_todos, ongoing),
        next: [],
      },
    )
  const result: RunResult = {
    answer: null,
    output_structure: [],
    error: outcome.status === 'failed' ? JSON.parse(JSON.stringify(outcome.error)) : null,
    todos: countTodos(todos),
    open_todos,
  }
  await sql.query('INSERT INTO run_results (tenant, run_id, result) VALUES ($1, $2, $3::json)', [
    tenant,
    run_id,
    JSON.stringify(result),
  ])
  if (outcome.status !== 'failed') return
  await sql.query(
    `INSERT INTO run_failures (tenant, run_id, error, node, created_at)
     SELECT tenant, run_id, $3, $4, created_at FROM runs WHERE tenant = $1 AND run_id = $2`,
    [tenant, run_id, outcome.error.code, outcome.error.node ?? null],
  )
}

/** The position of an action that no worker appends, and the epoch under which its run ends. */
type ActionPosition = RunFence & { session_id: string; turn: number; seq: number }

/** Appends an action to a run that no worker has. Inside the transaction that ends the run. */
export const appendUnclaimedAction = (
  sql: Sql,
  position: ActionPosition,
  { node, summary, result, next }: Pick<ActionBody, 'node' | 'summary' | 'result' | 'next'>,
  patch: Patch = {},
): Promise<unknown> => {
  const { session_id, seq, turn } = position
  const body = fillAction(node, { summary, result, relevance: 0, next })
  return sql.query(
    `INSERT INTO actions (tenant, run_id, epoch, session_id, seq, turn, attempt_id, body, patch)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8::json, $9::json)`,
    [
      ...toFenceValues(position),
      session_id,
      seq,
      turn,
      newAttemptId(),
      JSON.stringify(body),
      JSON.stringify(patch),
    ],
  )
}

/**
 * Requests the cancellation of a run. Queued and waiting runs are settled at once; the request for a running one is
 * stored in its row, which its worker polls every second. Throws `not_found`, and `run_ended` for completed or failed runs.
 */
export const cancelRun = (
  database: Database,
  businessId: string,
  runId: string,
  reason: string,
): Promise<SettledRun | null> =>
  database.asBusiness(businessId, async (sql) => {
    const run = await queryOne<{ status: string }>(
      sql,
      `UPDATE runs SET cancel_requested_at = COALESCE(cancel_requested_at, clock_timestamp()),
         cancel_reason = COALESCE(cancel_reason, $3::json)
       WHERE tenant = $1 AND run_id = $2 AND status IN ${openStatusesSql} RETURNING status`,
      [businessId, runId, JSON.stringify(reason)],
    )
    if (run)
      return run.status === 'running'
        ? null
        : settleRun(sql, businessId, runId, { status: 'cancelled', reason })
    const ended = await queryOne<{ status: string }>(
      sql,
      'SELECT status FROM runs WHERE tenant = $1 AND run_id = $2',
      [businessId, runId],
    )
    if (!ended) throw new MasonError('not_found', `there is no run "${runId}"`)
    if (ended.status !== 'cancelled')
      throw new MasonError('run_ended', `run "${runId}" has ${ended.status} and can no longer be cancelled`)
    return null
  })
