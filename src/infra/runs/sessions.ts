import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { Page, SessionView } from '../../state/run-view.ts'
import { type Database, one } from '../database/database.ts'
import { newAttemptId, newRunId, newSessionId } from '../ids.ts'
import { pageOf, readCursor } from './page.ts'
import { settleRun } from './settle.ts'

type SessionRow = { id: string; user_id: string; created_at: Date; updated_at: Date; at: string }

const turnsStatement = `
  SELECT r.session_id, r.turn, r.run_id, r.status, q.request->>'prompt' AS prompt, o.result->>'answer' AS answer,
    r.prompt_tokens, r.completion_tokens, r.total_tokens,
    COALESCE((SELECT a.patch->>'task_goals' FROM actions a WHERE a.tenant = r.tenant AND a.session_id = r.session_id
      AND a.turn = r.turn AND a.patch->>'task_goals' IS NOT NULL ORDER BY a.seq DESC LIMIT 1), '') AS goal
  FROM runs r JOIN run_requests q USING (tenant, run_id) LEFT JOIN run_results o USING (tenant, run_id)
  WHERE r.tenant = $1 AND r.session_id IN (SELECT json_array_elements_text($2::json)) ORDER BY r.session_id, r.turn`

type TurnRow = SessionView['turns'][number] & {
  session_id: string
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
}

const withTurns = async (sql: Sql, tenant: string, rows: readonly SessionRow[]): Promise<SessionView[]> => {
  const turns = await sql.query<TurnRow>(turnsStatement, [tenant, JSON.stringify(rows.map((row) => row.id))])
  return rows.map(({ id, user_id, created_at, updated_at }) => ({
    id,
    user_id,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    turns: turns.rows
      .filter((turn) => turn.session_id === id)
      .map(
        ({ turn, run_id, status, prompt, goal, answer, prompt_tokens, completion_tokens, total_tokens }) => ({
          turn,
          run_id,
          status,
          prompt,
          goal,
          answer,
          usage: { prompt_tokens, completion_tokens, total_tokens },
        }),
      ),
  }))
}

const sessionColumns = 'session_id AS id, user_id, created_at, updated_at, created_at::text AS at'

export const readSession = async (
  sql: Sql,
  tenant: string,
  sessionId: string,
): Promise<SessionView | null> => {
  const row = await one<SessionRow>(
    sql,
    `SELECT ${sessionColumns} FROM sessions WHERE tenant = $1 AND session_id = $2`,
    [tenant, sessionId],
  )
  return row && ((await withTurns(sql, tenant, [row]))[0] ?? null)
}

export type SessionFilter = { user_id?: string; limit: number; cursor?: string }

/** Sessions, newest first. */
export const listSessions = async (
  sql: Sql,
  tenant: string,
  filter: SessionFilter,
): Promise<Page<SessionView>> => {
  const after = readCursor(filter.cursor)
  const { rows } = await sql.query<SessionRow>(
    `SELECT ${sessionColumns} FROM sessions WHERE tenant = $1 AND ($2::text IS NULL OR user_id = $2)
       AND ($3::text IS NULL OR (created_at, session_id) < ($3::timestamptz, $4))
     ORDER BY created_at DESC, session_id DESC LIMIT $5`,
    [tenant, filter.user_id ?? null, after?.at ?? null, after?.id ?? null, filter.limit + 1],
  )
  const page = pageOf(rows, filter.limit, (row) => row)
  return { data: await withTurns(sql, tenant, page.data), next_cursor: page.next_cursor }
}

/** Cancels what is open of a session and deletes all of it. False: there is no such session. */
export const deleteSession = (database: Database, tenant: string, sessionId: string): Promise<boolean> =>
  database.asBusiness(tenant, async (sql) => {
    // the row lock keeps new turns out; a worker of a running one loses its fence with the row
    if (
      !(await one(sql, 'SELECT 1 AS there FROM sessions WHERE tenant = $1 AND session_id = $2 FOR UPDATE', [
        tenant,
        sessionId,
      ]))
    )
      return false
    const open = await sql.query<{ run_id: string }>(
      `SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2 AND status IN ('queued', 'input_required')`,
      [tenant, sessionId],
    )
    for (const { run_id } of open.rows)
      await settleRun(sql, tenant, run_id, { status: 'cancelled', reason: 'the session was deleted' })
    await sql.query(
      'DELETE FROM outbox WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2)',
      [tenant, sessionId],
    )
    await sql.query('DELETE FROM actions WHERE tenant = $1 AND session_id = $2', [tenant, sessionId])
    await sql.query('DELETE FROM sessions WHERE tenant = $1 AND session_id = $2', [tenant, sessionId])
    return true
  })

const copyActions = `
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, created_at, body, patch)
  SELECT a.tenant, $3, a.seq, m.new_id, a.turn, 0, $5 || '-' || a.seq, a.created_at, a.body, a.patch
  FROM actions a JOIN json_to_recordset($6::json) AS m(old_id text, new_id text) ON m.old_id = a.run_id
  WHERE a.tenant = $1 AND a.session_id = $2 AND a.seq <= $4`

const copyRuns = `
  INSERT INTO runs (tenant, run_id, session_id, turn, parent_run_id, graph_version, status, finish_reason, created_at,
    expires_at, started_at, ended_at, next_seq, worked_ms, prompt_tokens, completion_tokens, total_tokens)
  SELECT r.tenant, m.new_id, $3, r.turn, r.run_id, r.graph_version, CASE WHEN m.whole THEN r.status ELSE 'cancelled' END,
    CASE WHEN m.whole THEN r.finish_reason END, r.created_at, r.expires_at, r.started_at, COALESCE(r.ended_at, clock_timestamp()),
    0, r.worked_ms, m.prompt_tokens, m.completion_tokens, m.total_tokens
  FROM runs r JOIN json_to_recordset($4::json) AS m(old_id text, new_id text, whole boolean, prompt_tokens bigint, completion_tokens bigint, total_tokens bigint)
    ON m.old_id = r.run_id WHERE r.tenant = $1 AND r.session_id = $2`

type Part = {
  old_id: string
  new_id: string
  whole: boolean
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
}

/**
 * A new session of the same user that holds everything up to an action; a run that the action cuts ends there as
 * cancelled. Null: no such session or action.
 */
export const forkSession = (
  database: Database,
  tenant: string,
  sessionId: string,
  actionId: number,
): Promise<SessionView | null> =>
  database.asBusiness(tenant, async (sql) => {
    const { rows } = await sql.query<Omit<Part, 'new_id'>>(
      `SELECT run_id AS old_id, bool_or(body->>'node' = 'end') AS whole,
         sum((body->'usage'->>'prompt_tokens')::bigint) AS prompt_tokens, sum((body->'usage'->>'completion_tokens')::bigint) AS completion_tokens,
         sum((body->'usage'->>'total_tokens')::bigint) AS total_tokens
       FROM actions WHERE tenant = $1 AND session_id = $2 AND seq <= $3 GROUP BY run_id, turn ORDER BY turn`,
      [tenant, sessionId, actionId],
    )
    const there = await one(
      sql,
      'SELECT 1 AS there FROM actions WHERE tenant = $1 AND session_id = $2 AND seq = $3',
      [tenant, sessionId, actionId],
    )
    if (!there) return null
    const forkId = newSessionId()
    const parts = rows.map((row): Part => ({ ...row, new_id: newRunId() }))
    const json = JSON.stringify(parts)
    await sql.query(
      `INSERT INTO sessions (tenant, session_id, user_id, turns)
       SELECT tenant, $3, user_id, (SELECT max(turn) FROM actions WHERE tenant = $1 AND session_id = $2 AND seq <= $4)
       FROM sessions WHERE tenant = $1 AND session_id = $2`,
      [tenant, sessionId, forkId, actionId],
    )
    await sql.query(copyRuns, [tenant, sessionId, forkId, json])
    for (const table of ['run_requests', 'run_results'] as const)
      await sql.query(copyWide[table], [tenant, json])
    await sql.query(copyActions, [tenant, sessionId, forkId, actionId, newAttemptId(), json])
    const fork = await readSession(sql, tenant, forkId)
    if (!fork) throw new MasonError('internal', 'the fork was not written')
    return fork
  })

const copyWide = {
  run_requests: `INSERT INTO run_requests (tenant, run_id, user_id, request) SELECT w.tenant, m.new_id, w.user_id, w.request
    FROM run_requests w JOIN json_to_recordset($2::json) AS m(old_id text, new_id text) ON m.old_id = w.run_id WHERE w.tenant = $1`,
  run_results: `INSERT INTO run_results (tenant, run_id, result) SELECT w.tenant, m.new_id, w.result
    FROM run_results w JOIN json_to_recordset($2::json) AS m(old_id text, new_id text, whole boolean) ON m.old_id = w.run_id WHERE w.tenant = $1 AND m.whole`,
}
