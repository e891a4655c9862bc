import { hasRow, queryOne } from '../../infra/database/database.ts'
import { headChars, type PageRequest, readableJson, readPage } from '../../infra/database/pagination.ts'
import { toIsoTimes } from '../../infra/database/row-times.ts'
import type { Patch } from '../../state/patch.ts'
import type { RunResult } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { toPublicStatusSql } from '../../state/run-status.ts'
import type { Page, SessionView } from '../../state/run-view.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { sumUsage } from '../../state/token-usage.ts'
import { requestHeadSql } from '../runs/run-queries.ts'

type SessionRow = { id: string; user_id: string; created_at: Date; updated_at: Date }

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
  SELECT r.turn, r.run_id, ${toPublicStatusSql('r.status')} AS status, q.request, o.result, r.prompt_tokens, r.completion_tokens, r.total_tokens,
    ${goalsSql} AS goals
  FROM runs r JOIN run_requests q USING (tenant, run_id) LEFT JOIN run_results o USING (tenant, run_id)
  WHERE r.tenant = $1 AND r.session_id = $2 ORDER BY r.turn`

type TurnRow = Pick<SessionView['turns'][number], 'turn' | 'run_id' | 'status'> &
  Usage & {
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

const toSessionView = (
  { id, user_id, created_at, updated_at }: SessionRow,
  turns: SessionView['turns'],
): SessionView => toIsoTimes({ id, user_id, created_at, updated_at, turns })

const sessionColumns = 'session_id AS id, user_id, created_at, updated_at'

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
  if (!row) return null
  const turns = await sql.query<TurnRow>(turnsStatement, [businessId, sessionId])
  return toSessionView(row, turns.rows.map(toTurnView))
}

/** Whether there is such a session; costs the same however long it is. */
export const sessionExists = (sql: Sql, businessId: string, sessionId: string): Promise<boolean> =>
  hasRow(sql, 'SELECT 1 AS there FROM sessions WHERE tenant = $1 AND session_id = $2', [
    businessId,
    sessionId,
  ])

/** Which sessions a list has. */
export type SessionFilter = PageRequest & { user_id?: string }

/** The latest runs of a session of a list, and their documents. */
const listedRunsSql = (sessionId: string): string => `
  (SELECT * FROM runs WHERE tenant = $1 AND session_id = ${sessionId} ORDER BY turn DESC LIMIT ${listedTurns}) r
  JOIN run_requests q USING (tenant, run_id) LEFT JOIN run_results o USING (tenant, run_id)`

const goalHeadSql = `(SELECT json_build_array(json_build_object('task_goals', left(x.task_goals, ${headChars})))
  FROM actions a CROSS JOIN LATERAL json_to_record(${readableJson('a.patch')}) AS x (task_goals text)
  WHERE a.tenant = r.tenant AND a.session_id = r.session_id AND a.seq >= r.first_seq
    AND a.seq < LEAST(r.next_seq, r.first_seq + ${maxPreparingActions}) AND a.patch::text LIKE '%"task_goals":%'
  ORDER BY a.seq DESC LIMIT 1)`

/** The turns of a session `l` of a list, with the beginnings of their texts. */
const turnHeadsSql = `(SELECT json_agg(json_build_object('turn', r.turn, 'run_id', r.run_id, 'status', ${toPublicStatusSql('r.status')},
    'request', ${requestHeadSql('q.request', 'true')},
    'result', (SELECT json_build_object('answer', left(x.answer, ${headChars}), 'goal', left(x.goal, ${headChars}),
      'cut', length(x.answer) > ${headChars}) FROM json_to_record(${readableJson('o.result')}) AS x (answer text, goal text)),
    'goals', CASE WHEN o.result::text LIKE '%"goal":%' THEN NULL ELSE ${goalHeadSql} END,
    'prompt_tokens', r.prompt_tokens, 'completion_tokens', r.completion_tokens, 'total_tokens', r.total_tokens) ORDER BY r.turn)
  FROM ${listedRunsSql('l.id')})`

type ListedTurnRow = TurnRow & { request: { cut?: boolean }; result: { cut?: boolean } | null }

const toTurnHead = (row: ListedTurnRow): SessionView['turns'][number] => {
  const truncated = [...(row.request.cut ? ['prompt'] : []), ...(row.result?.cut ? ['answer'] : [])]
  return { ...toTurnView(row), ...(truncated.length > 0 && { truncated }) }
}

/** Sessions, newest first, each with its latest turns. */
export const listSessions = (
  sql: Sql,
  businessId: string,
  filter: SessionFilter,
): Promise<Page<SessionView>> => {
  const list = {
    select: sessionColumns,
    storedBytes: `(SELECT coalesce(sum(pg_column_size(q.request) + coalesce(pg_column_size(o.result), 0)), 0)
      FROM ${listedRunsSql('s.session_id')})`,
    pageColumns: `l.id, l.user_id, l.created_at, l.updated_at, ${turnHeadsSql} AS turns`,
    from: 'sessions s',
    at: 's.created_at',
    id: 's.session_id',
    where: 's.tenant = $1 AND ($2::text IS NULL OR s.user_id = $2)',
    values: [businessId, filter.user_id ?? null],
  }
  return readPage(sql, list, filter, (row: SessionRow & { turns: ListedTurnRow[] | null }) =>
    toSessionView(row, (row.turns ?? []).map(toTurnHead)),
  )
}
