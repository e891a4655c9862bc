import { hasRow, queryOne } from '../../infra/database/database.ts'
import { toPage, toPageValues } from '../../infra/database/pagination.ts'
import type { Patch } from '../../state/patch.ts'
import type { RunResult } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import type { Page, SessionView } from '../../state/run-view.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { sumUsage } from '../../state/token-usage.ts'

type SessionRow = { id: string; user_id: string; created_at: Date; updated_at: Date; at: string }

/** The goal of a turn is set before the planner's first action: within so many actions. */
const maxPreparingActions = 32

/** A list has so many of the latest turns of each session; a single session has all. */
const listedTurns = 50

/** By the text, since the operators of json reject documents with a NUL in them. The result of an ended run has its goal. */
const goalsSql = `
  CASE WHEN o.result::text LIKE '%"goal":%' THEN NULL ELSE (
    SELECT json_agg(a.patch ORDER BY a.seq) FROM actions a WHERE a.tenant = r.tenant AND a.session_id = r.session_id
      AND a.seq >= r.first_seq AND a.seq < LEAST(r.next_seq, r.first_seq + ${maxPreparingActions}) AND a.patch::text LIKE '%"task_goals":%') END`

/** Reads whole documents: see run_requests in the migration. */
const turnsStatement = `
  SELECT r.session_id, r.turn, r.run_id, r.status, q.request, o.result, r.prompt_tokens, r.completion_tokens, r.total_tokens,
    ${goalsSql} AS goals
  FROM json_array_elements_text($2::json) AS listed(session_id) CROSS JOIN LATERAL (
    SELECT * FROM runs WHERE tenant = $1 AND session_id = listed.session_id ORDER BY turn DESC LIMIT $3) r
  JOIN run_requests q USING (tenant, run_id) LEFT JOIN run_results o USING (tenant, run_id)
  ORDER BY r.session_id, r.turn`

type TurnRow = Pick<SessionView['turns'][number], 'turn' | 'run_id' | 'status'> &
  Usage & {
    session_id: string
    request: AdmittedRequest
    result: RunResult | null
    /** Null: the result has it, or there is none. */
    goals: Pick<Patch, 'task_goals'>[] | null
  }

const toTurnView = ({ turn, run_id, status, request, result, goals, ...row }: TurnRow) => ({
  turn,
  run_id,
  status,
  prompt: request.prompt,
  goal: result?.goal ?? goals?.findLast((patch) => patch.task_goals !== undefined)?.task_goals ?? '',
  answer: result?.answer ?? null,
  usage: sumUsage([row]),
})

const readTurns = async (
  sql: Sql,
  businessId: string,
  rows: readonly SessionRow[],
  atMost: number | null,
): Promise<SessionView[]> => {
  const ids = JSON.stringify(rows.map((row) => row.id))
  const turns = await sql.query<TurnRow>(turnsStatement, [businessId, ids, atMost])
  const bySession = new Map(rows.map(({ id }) => [id, [] as TurnRow[]]))
  for (const turn of turns.rows) bySession.get(turn.session_id)?.push(turn)
  return rows.map(({ id, user_id, created_at, updated_at }) => ({
    id,
    user_id,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    turns: (bySession.get(id) ?? []).map(toTurnView),
  }))
}

const sessionColumns = 'session_id AS id, user_id, created_at, updated_at, created_at::text AS at'

/** A session with all its turns, or null. */
export const readSession = async (
  sql: Sql,
  businessId: string,
  sessionId: string,
): Promise<SessionView | null> => {
  const row = await queryOne<SessionRow>(
    sql,
    `SELECT ${sessionColumns} FROM sessions WHERE tenant = $1 AND session_id = $2`,
    [businessId, sessionId],
  )
  return row && ((await readTurns(sql, businessId, [row], null))[0] ?? null)
}

/** Whether there is such a session; costs the same however long it is. */
export const sessionExists = (sql: Sql, businessId: string, sessionId: string): Promise<boolean> =>
  hasRow(sql, 'SELECT 1 AS there FROM sessions WHERE tenant = $1 AND session_id = $2', [
    businessId,
    sessionId,
  ])

/** `cursor`: from the page before. */
export type SessionFilter = { user_id?: string; limit: number; cursor?: string }

/** Sessions, newest first, each with its latest turns. */
export const listSessions = async (
  sql: Sql,
  businessId: string,
  filter: SessionFilter,
): Promise<Page<SessionView>> => {
  const { rows } = await sql.query<SessionRow>(
    `SELECT ${sessionColumns} FROM sessions WHERE tenant = $1 AND ($2::text IS NULL OR user_id = $2)
       AND ($3::text IS NULL OR (created_at, session_id) < ($3::timestamptz, $4))
     ORDER BY created_at DESC, session_id DESC LIMIT $5`,
    [businessId, filter.user_id ?? null, ...toPageValues(filter)],
  )
  const page = toPage(rows, filter.limit, (row) => row)
  return { data: await readTurns(sql, businessId, page.data, listedTurns), next_cursor: page.next_cursor }
}
