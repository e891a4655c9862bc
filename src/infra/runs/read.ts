import type { Patch } from '../../state/patch.ts'
import type { Sql } from '../../state/ports.ts'
import type { ActionEvent, Page, RunStatus, RunView } from '../../state/run-view.ts'
import type { ActionBody } from '../../state/runtime-state.ts'
import { pageOf, readCursor } from './page.ts'

type RunRow = Omit<
  RunView,
  'usage' | 'input_request' | 'created_at' | 'started_at' | 'ended_at' | 'metadata'
> & {
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  metadata: RunView['metadata']
  result: Pick<RunView, 'answer' | 'output_structure' | 'error'> | null
  input_id: string | null
  question: string
  schema: Record<string, never>
  options: string[]
  expires_at: Date
}

const columns = `r.run_id AS id, r.session_id, r.turn, r.status, r.finish_reason, r.created_at, r.started_at, r.ended_at,
  r.prompt_tokens, r.completion_tokens, r.total_tokens, q.metadata, o.result,
  i.request_id AS input_id, i.question, i.schema, i.options, i.expires_at`

const tables = `runs r JOIN run_requests q ON q.tenant = r.tenant AND q.run_id = r.run_id
  LEFT JOIN run_results o ON o.tenant = r.tenant AND o.run_id = r.run_id
  LEFT JOIN LATERAL (
    SELECT * FROM input_requests i WHERE i.tenant = r.tenant AND i.run_id = r.run_id AND i.answered_at IS NULL
      AND r.status = 'input_required' ORDER BY i.created_at LIMIT 1
  ) i ON true`

const viewOf = (row: RunRow): RunView => ({
  id: row.id,
  session_id: row.session_id,
  turn: row.turn,
  status: row.status,
  finish_reason: row.finish_reason,
  answer: row.result?.answer ?? null,
  output_structure: row.result?.output_structure ?? [],
  usage: {
    prompt_tokens: row.prompt_tokens,
    completion_tokens: row.completion_tokens,
    total_tokens: row.total_tokens,
  },
  error: row.result?.error ?? null,
  input_request: row.input_id
    ? {
        id: row.input_id,
        question: row.question,
        schema: row.schema,
        options: row.options,
        expires_at: row.expires_at.toISOString(),
      }
    : null,
  metadata: row.metadata,
  created_at: row.created_at.toISOString(),
  started_at: row.started_at?.toISOString() ?? null,
  ended_at: row.ended_at?.toISOString() ?? null,
})

/** A run as `GET` shows it, or null. */
export const readRun = async (sql: Sql, tenant: string, runId: string): Promise<RunView | null> =>
  (await readCurrentRuns(sql, { tenant, session_id: '', run_id: runId }))[0]?.view ?? null

/** A run as it is shown, and where its actions stand at that moment. */
export type FollowedRun = { view: RunView; range: SeqRange }

/** The run that is followed; of a session the one whose turn it is, after the one that came before. */
export const readCurrentRuns = async (
  sql: Sql,
  { tenant, session_id, run_id }: { tenant: string; session_id: string; run_id?: string },
): Promise<FollowedRun[]> => {
  const { rows } = run_id
    ? await sql.query<RunRow & SeqRange>(followedStatement, [tenant, run_id])
    : await sql.query<RunRow & SeqRange>(currentStatement, [tenant, session_id])
  return rows.map((row) => ({
    view: viewOf(row),
    range: { first_seq: row.first_seq, next_seq: row.next_seq },
  }))
}

const followedStatement = `SELECT ${columns}, r.first_seq, r.next_seq FROM ${tables} WHERE r.tenant = $1 AND r.run_id = $2`

const currentStatement = `
  SELECT ${columns}, r.first_seq, r.next_seq FROM ${tables} WHERE r.tenant = $1 AND r.run_id IN (
    (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2 AND status NOT IN ('queued', 'running', 'input_required')
       ORDER BY turn DESC LIMIT 1)
    UNION ALL
    (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2 AND status IN ('queued', 'running', 'input_required')
       ORDER BY turn LIMIT 1)) ORDER BY r.turn`

export type RunFilter = {
  user_id?: string
  session_id?: string
  status?: RunStatus
  limit: number
  cursor?: string
}

/** Runs, newest first. */
export const listRuns = async (sql: Sql, tenant: string, filter: RunFilter): Promise<Page<RunView>> => {
  const after = readCursor(filter.cursor)
  const { rows } = await sql.query<RunRow & { at: string }>(filter.user_id ? listOfUser : listOfAll, [
    tenant,
    filter.session_id ?? null,
    filter.status ?? null,
    after?.at ?? null,
    after?.id ?? null,
    filter.limit + 1,
    ...(filter.user_id ? [filter.user_id] : []),
  ])
  return pageOf(rows, filter.limit, viewOf)
}

const listStatement = (which: string): string => `
  SELECT ${columns}, r.created_at::text AS at FROM ${tables} WHERE r.tenant = $1 ${which}
    AND ($2::text IS NULL OR r.session_id = $2) AND ($3::text IS NULL OR r.status = $3)
    AND ($4::text IS NULL OR (r.created_at, r.run_id) < ($4::timestamptz, $5))
  ORDER BY r.created_at DESC, r.run_id DESC LIMIT $6`

const listOfAll = listStatement('')
/** By the sessions of the user, all of whose runs are the user's. */
const listOfUser = listStatement(
  'AND r.session_id IN (SELECT session_id FROM sessions WHERE tenant = $1 AND user_id = $7)',
)

/** `patch` only where it changes todos. */
export type EventRow = {
  seq: number
  run_id: string
  turn: number
  body: ActionBody
  patch: Pick<Patch, 'todos'> | null
}

export const eventOf = ({ seq, run_id, turn, body }: EventRow): ActionEvent => ({
  id: seq,
  ...body,
  run_id,
  turn,
})

/** A patch that holds todos, told by its text: the operators of json refuse documents with a NUL in them. */
const changesTodos = `patch::text LIKE '%"todos":%'`

/** The ids a run's actions have: from the first up to and without the second. Both null before it was ever claimed. */
export type SeqRange = { first_seq: number | null; next_seq: number | null }

/** Actions of a session, or of one of its runs only, after one, at most `limit`. Never reads any others. */
export const readActions = async (
  sql: Sql,
  { tenant, session_id, run_id }: { tenant: string; session_id: string; run_id?: string },
  after: number,
  limit: number,
): Promise<EventRow[]> => {
  const { rows } = run_id
    ? await sql.query<EventRow>(actionsOf(inRange), [tenant, session_id, after, limit, run_id])
    : await sql.query<EventRow>(actionsOf('true'), [tenant, session_id, after, limit])
  return rows
}

const inRange = `seq >= (SELECT first_seq FROM runs WHERE tenant = $1 AND run_id = $5)
  AND seq < (SELECT next_seq FROM runs WHERE tenant = $1 AND run_id = $5)`

const actionsOf = (which: string): string => `
  SELECT seq, run_id, turn, body, CASE WHEN ${changesTodos} THEN patch END AS patch FROM actions
  WHERE tenant = $1 AND session_id = $2 AND seq > $3::bigint AND ${which} ORDER BY seq LIMIT $4`

/** What the actions of a run did to its todos, in order. */
export const readTodoPatches = async (
  sql: Sql,
  tenant: string,
  sessionId: string,
  { first_seq, next_seq }: SeqRange,
): Promise<Pick<Patch, 'todos'>[]> => {
  if (first_seq === null || next_seq === null) return []
  const { rows } = await sql.query<{ patch: Pick<Patch, 'todos'> }>(
    `SELECT patch FROM actions WHERE tenant = $1 AND session_id = $2 AND seq >= $3 AND seq < $4 AND ${changesTodos} ORDER BY seq`,
    [tenant, sessionId, first_seq, next_seq],
  )
  return rows.map(({ patch }) => patch)
}
