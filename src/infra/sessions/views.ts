import type { Patch } from '../../state/patch.ts'
import type { RunResult, Sql } from '../../state/ports.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import type { Page, SessionView } from '../../state/run-view.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { one } from '../database/database.ts'
import { pageOf, readCursor } from '../runs/page.ts'

type SessionRow = { id: string; user_id: string; created_at: Date; updated_at: Date; at: string }

/** A turn's goal is set by what prepares it, before the planner first speaks: among so many of its actions. */
const preparing = 32

/** A list shows so many turns of each session, the latest; a session alone shows all of its own. */
const listedTurns = 50

/** Told by the text: the operators of json refuse documents with a NUL in them. What ended says its goal itself. */
const goals = `
  CASE WHEN o.result::text LIKE '%"goal":%' THEN NULL ELSE (
    SELECT json_agg(a.patch ORDER BY a.seq) FROM actions a WHERE a.tenant = r.tenant AND a.session_id = r.session_id
      AND a.seq >= r.first_seq AND a.seq < LEAST(r.next_seq, r.first_seq + ${preparing}) AND a.patch::text LIKE '%"task_goals":%') END`

/** The documents come whole: see run_requests in the migration. */
const turnsStatement = `
  SELECT r.session_id, r.turn, r.run_id, r.status, q.request, o.result, r.prompt_tokens, r.completion_tokens, r.total_tokens,
    ${goals} AS goals
  FROM json_array_elements_text($2::json) AS wanted(session_id) CROSS JOIN LATERAL (
    SELECT * FROM runs WHERE tenant = $1 AND session_id = wanted.session_id ORDER BY turn DESC LIMIT $3) r
  JOIN run_requests q USING (tenant, run_id) LEFT JOIN run_results o USING (tenant, run_id)
  ORDER BY r.session_id, r.turn`

type TurnRow = Pick<SessionView['turns'][number], 'turn' | 'run_id' | 'status'> &
  Usage & {
    session_id: string
    request: AdmittedRequest
    result: RunResult | null
    /** Null: the result says it, or nothing does. */
    goals: Pick<Patch, 'task_goals'>[] | null
  }

const turnOf = ({ turn, run_id, status, request, result, goals, ...row }: TurnRow) => ({
  turn,
  run_id,
  status,
  prompt: request.prompt,
  goal: result?.goal ?? goals?.findLast((patch) => patch.task_goals !== undefined)?.task_goals ?? '',
  answer: result?.answer ?? null,
  usage: {
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    total_tokens: row.total_tokens,
  },
})

const withTurns = async (
  sql: Sql,
  tenant: string,
  rows: readonly SessionRow[],
  atMost: number | null,
): Promise<SessionView[]> => {
  const ids = JSON.stringify(rows.map((row) => row.id))
  const turns = await sql.query<TurnRow>(turnsStatement, [tenant, ids, atMost])
  const bySession = new Map(rows.map(({ id }) => [id, [] as TurnRow[]]))
  for (const turn of turns.rows) bySession.get(turn.session_id)?.push(turn)
  return rows.map(({ id, user_id, created_at, updated_at }) => ({
    id,
    user_id,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    turns: (bySession.get(id) ?? []).map(turnOf),
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
  return row && ((await withTurns(sql, tenant, [row], null))[0] ?? null)
}

/** Whether there is such a session; costs the same however long it is. */
export const sessionExists = async (sql: Sql, tenant: string, sessionId: string): Promise<boolean> =>
  (await one(sql, 'SELECT 1 AS there FROM sessions WHERE tenant = $1 AND session_id = $2', [
    tenant,
    sessionId,
  ])) !== null

export type SessionFilter = { user_id?: string; limit: number; cursor?: string }

/** Sessions, newest first, each with its latest turns. */
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
  return { data: await withTurns(sql, tenant, page.data, listedTurns), next_cursor: page.next_cursor }
}
