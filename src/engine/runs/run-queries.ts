import {
  cutJson,
  headChars,
  isLongJson,
  type PageRequest,
  readableJson,
  readPage,
  truncatedColumn,
} from '../../infra/database/pagination.ts'
import type { ActionRow } from '../../state/fold.ts'
import type { Patch } from '../../state/patch.ts'
import type { RunResult } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import { openStatusesSql, toPublicStatusSql } from '../../state/run-status.ts'
import type { Page, RunStatus, RunView } from '../../state/run-view.ts'
import type { Todo, Usage } from '../../state/runtime-state.ts'
import { countTodos, listOpenTodos } from '../../state/todos.ts'
import { sumUsage } from '../../state/token-usage.ts'
import { toMetadataEntries } from './metadata-entries.ts'
import { hashSearch } from './run-words.ts'

type RunRow = Pick<
  RunView,
  | 'id'
  | 'session_id'
  | 'business_id'
  | 'user_id'
  | 'turn'
  | 'status'
  | 'finish_reason'
  | 'retry_reason'
  | 'retry_of'
  | 'metadata'
> &
  Usage & {
    /** Null where the prompt is not needed. */
    request: Pick<AdmittedRequest, 'prompt'> | null
    created_at: Date
    started_at: Date | null
    ended_at: Date | null
    result: StoredResult | null
    run_at: Date
    input_id: string | null
    question: string
    schema: Record<string, never>
    options: string[]
    expires_at: Date
    secret: boolean
    consent_payment_id: string | null
    consent_expires_at: Date
    operator_request: RunView['operator_request']
    /** Where the result has no counts of todos. */
    todo_patches: Pick<Patch, 'todos'>[] | null
  }

/** What an ended run has left, as the view shows it. */
type StoredResult = Omit<RunResult, 'output_structure' | 'error'> &
  Pick<RunView, 'output_structure' | 'error'>

/** No join: with one more, Postgres no longer orders them freely (`join_collapse_limit`), and a list reads all runs. */
const operatorRequestSql = `(SELECT json_build_object('effect_id', e.effect_id, 'error', COALESCE(e.error, ''))
  FROM waits w JOIN effects e ON e.tenant = w.tenant AND e.effect_id = w.ref_id
  WHERE w.tenant = r.tenant AND w.run_id = r.run_id AND w.kind = 'effect' AND w.done_at IS NULL AND r.status IN ${openStatusesSql}
  ORDER BY w.created_at LIMIT 1)`

const runColumns = `r.run_id AS id, r.session_id, r.tenant AS business_id, q.user_id, r.turn, ${toPublicStatusSql('r.status')} AS status, r.finish_reason, r.created_at, r.started_at, r.ended_at,
  r.prompt_tokens, r.completion_tokens, r.total_tokens, q.metadata, q.retry_of, o.result,
  r.run_at, z.reason AS retry_reason, i.request_id AS input_id, i.question, i.schema, i.options, i.expires_at, i.secret,
  c.payment_id AS consent_payment_id, c.expires_at AS consent_expires_at, ${operatorRequestSql} AS operator_request`

const runJoins = `JOIN run_requests q ON q.tenant = r.tenant AND q.run_id = r.run_id
  LEFT JOIN run_results o ON o.tenant = r.tenant AND o.run_id = r.run_id
  LEFT JOIN LATERAL (
    SELECT * FROM input_requests i WHERE i.tenant = r.tenant AND i.run_id = r.run_id AND i.answered_at IS NULL
      AND r.status IN ${openStatusesSql} ORDER BY i.created_at LIMIT 1
  ) i ON true
  LEFT JOIN LATERAL list_run_consents(r.tenant, r.run_id) c ON c.status = 'open' AND c.expires_at > clock_timestamp()
    AND r.status IN ${openStatusesSql}
  LEFT JOIN run_outages z ON z.tenant = r.tenant AND z.run_id = r.run_id AND z.seq = r.next_seq AND r.status = 'queued'`
const runTables = `runs r ${runJoins}`

const toRunView = (row: RunRow): RunView => {
  const todos = mergeTodos(row.todo_patches ?? [])
  return {
    id: row.id,
    session_id: row.session_id,
    business_id: row.business_id,
    user_id: row.user_id,
    turn: row.turn,
    prompt: row.request?.prompt ?? '',
    status: row.status,
    finish_reason: row.finish_reason,
    answer: row.result?.answer ?? null,
    output_structure: row.result?.output_structure ?? [],
    output_errors: row.result?.output_errors ?? [],
    todos: row.result?.todos ?? countTodos(todos),
    open_todos: row.result?.open_todos ?? (row.ended_at ? listOpenTodos(todos) : []),
    usage: sumUsage([row]),
    error: row.result?.error ?? null,
    input_request: row.input_id
      ? {
          id: row.input_id,
          question: row.question,
          schema: row.schema,
          options: row.options,
          expires_at: row.expires_at.toISOString(),
          ...(row.secret && { secret: true as const }),
        }
      : null,
    consent_request:
      row.consent_payment_id === null
        ? null
        : { payment_id: row.consent_payment_id, expires_at: row.consent_expires_at.toISOString() },
    operator_request: row.operator_request,
    retry_at: row.retry_reason ? row.run_at.toISOString() : null,
    retry_reason: row.retry_reason,
    retry_of: row.retry_of,
    metadata: row.metadata,
    created_at: row.created_at.toISOString(),
    started_at: row.started_at?.toISOString() ?? null,
    ended_at: row.ended_at?.toISOString() ?? null,
  }
}

/** Whether a patch changes todos, by its text: the operators of json reject documents with a NUL in them. */
export const changesTodosSql = `patch::text LIKE '%"todos":%'`

/** The patches of a run that change todos, in their order. */
const todoPatchesSql = `(SELECT json_agg(a.patch ORDER BY a.seq) FROM actions a WHERE a.tenant = r.tenant
  AND a.session_id = r.session_id AND a.seq >= r.first_seq AND a.seq < r.next_seq AND a.${changesTodosSql})`

const mergeTodos = (patches: readonly Pick<Patch, 'todos'>[]): Todo[] => [
  ...new Map(patches.flatMap(({ todos = [] }) => todos.map((todo) => [todo.id, todo]))).values(),
]

/** The todos of a run as its actions have left them. */
export const readRunTodos = async (sql: Sql, businessId: string, runId: string): Promise<Todo[]> => {
  const { rows } = await sql.query<Pick<RunRow, 'todo_patches'>>(
    `SELECT ${todoPatchesSql} AS todo_patches FROM runs r WHERE r.tenant = $1 AND r.run_id = $2`,
    [businessId, runId],
  )
  return mergeTodos(rows[0]?.todo_patches ?? [])
}

/** Whether a run has not ended, or was ended by a version that did not count todos. */
const isUncountedSql = `(o.result IS NULL OR o.result::text NOT LIKE '%"todos":%')`

const viewColumns = `${runColumns}, q.request, CASE WHEN ${isUncountedSql} THEN ${todoPatchesSql} END AS todo_patches`

/** A run as `GET /v1/runs/:id` returns it, or null. */
export const readRun = async (sql: Sql, businessId: string, runId: string): Promise<RunView | null> => {
  const { rows } = await sql.query<RunRow>(
    `SELECT ${viewColumns} FROM ${runTables} WHERE r.tenant = $1 AND r.run_id = $2`,
    [businessId, runId],
  )
  return rows[0] ? toRunView(rows[0]) : null
}

/** A run as the API returns it, its prompt and todos once it has ended; and the ids of its actions at that moment. */
export type FollowedRun = { view: RunView; range: SeqRange }

/** The run with that id; of a session its last ended run and its first unfinished one. */
export const readCurrentRuns = async (
  sql: Sql,
  { business_id, session_id, run_id }: { business_id: string; session_id: string; run_id?: string },
): Promise<FollowedRun[]> => {
  const { rows } = run_id
    ? await sql.query<RunRow & SeqRange>(followedStatement, [business_id, run_id])
    : await sql.query<RunRow & SeqRange>(currentStatement, [business_id, session_id])
  return rows.map((row) => ({
    view: toRunView(row),
    range: { first_seq: row.first_seq, next_seq: row.next_seq },
  }))
}

/** Read at every commit: a prompt may be long. */
const followedColumns = `${runColumns}, CASE WHEN r.ended_at IS NOT NULL THEN q.request END AS request,
  CASE WHEN r.ended_at IS NOT NULL AND ${isUncountedSql} THEN ${todoPatchesSql} END AS todo_patches, r.first_seq, r.next_seq`

const followedStatement = `SELECT ${followedColumns} FROM ${runTables} WHERE r.tenant = $1 AND r.run_id = $2`

const currentStatement = `
  SELECT ${followedColumns} FROM ${runTables} WHERE r.tenant = $1 AND r.run_id IN (
    (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2 AND status NOT IN ${openStatusesSql}
       ORDER BY turn DESC LIMIT 1)
    UNION ALL
    (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2 AND status IN ${openStatusesSql}
       ORDER BY turn LIMIT 1)) ORDER BY r.turn`

/** Which runs a list has. */
export type RunFilter = PageRequest & {
  user_id?: string
  session_id?: string
  status?: RunStatus
  idempotency_key?: string
  /** Of several all must match. */
  metadata?: Record<string, string>
  /** Submitted from this time on, and before that one; ISO 8601. */
  from?: string
  to?: string
  finish_reason?: string
  /** The code of the error of a failed run, and the node or tool where it failed. */
  error?: string
  node?: string
  /** The alias of a model that it has called. */
  model?: string
  /** Words of its prompt or answer, once it has ended; all must be there. */
  q?: string
  /** Whose status is of this time or later, in milliseconds since 1970. */
  status_from?: number
  /** Whether it waits for the approval of a payment. */
  consent?: boolean
  order?: 'asc' | 'desc'
  /** Down to this moment of the list, as the database writes it. */
  edge?: string
}

/** The request of a run for a list; `cut`: its prompt is cut. */
export const requestHeadSql = (column: string, maxed: string): string => `CASE WHEN ${maxed} THEN (
    SELECT json_build_object('prompt', left(x.prompt, ${headChars}), 'cut', length(x.prompt) > ${headChars})
    FROM json_to_record(${readableJson(column)}) AS x (prompt text)) ELSE ${column} END`

const resultHeadSql = `(
    SELECT json_build_object('answer', left(x.answer, ${headChars}), 'todos', x.todos, 'output_structure', '[]'::json,
      'error', CASE WHEN octet_length(x.error::text) <= ${headChars} OR json_typeof(x.error) = 'null' THEN x.error ELSE
        json_build_object('code', x.error ->> 'code', 'message', left(x.error ->> 'message', ${headChars})) END,
      'open_todos', '[]'::json, 'cut', '["answer", "output_structure", "output_errors", "open_todos", "error"]'::json)
    FROM json_to_record(${readableJson('l.result')}) AS x (answer text, todos json, error json))`

/** The latest status of each todo of a run, as one patch: what a list counts. */
const todoStatusesSql = `(SELECT json_build_array(json_build_object('todos', json_agg(json_build_object('id', t.id, 'status', t.status))))
  FROM (SELECT DISTINCT ON (t.id) t.id, t.status FROM actions a
    CROSS JOIN LATERAL json_to_record(${readableJson('a.patch')}) AS p (todos json)
    CROSS JOIN LATERAL json_to_recordset(p.todos) AS t (id text, status text)
    WHERE a.tenant = l.business_id AND a.session_id = l.session_id AND a.seq >= l.first_seq AND a.seq < l.next_seq
      AND a.${changesTodosSql} ORDER BY t.id, a.seq DESC) t HAVING count(*) > 0)`

const plainColumns = `id, session_id, business_id, user_id, turn, status, finish_reason, created_at, started_at, ended_at, prompt_tokens,
  completion_tokens, total_tokens, run_at, retry_reason, retry_of, input_id, expires_at, secret, consent_payment_id, consent_expires_at, operator_request`

const listedColumns = `l.${plainColumns.replaceAll(/,\s+/g, ', l.')},
  ${requestHeadSql('l.request', isLongJson('l.request'))} AS request, ${cutJson('l.result', resultHeadSql)} AS result,
  ${['metadata', 'question', 'schema', 'options'].map((column) => `${cutJson(`l.${column}`)} AS ${column}`).join(', ')},
  CASE WHEN ${isUncountedSql.replaceAll('o.result', 'l.result')} THEN ${todoStatusesSql} END AS todo_patches,
  ${truncatedColumn({
    metadata: isLongJson('l.metadata'),
    input_request: ['question', 'schema', 'options'].map((column) => isLongJson(`l.${column}`)).join(' OR '),
  })}`

/** Runs, newest first, with the beginnings of long texts. */
export const listRuns = (sql: Sql, businessId: string, filter: RunFilter): Promise<Page<RunView>> => {
  const list = {
    select: `${runColumns}, q.request, r.first_seq, r.next_seq`,
    storedBytes: 'pg_column_size(q.request) + coalesce(pg_column_size(o.result), 0)',
    pageColumns: listedColumns,
    ...buildRunFilter(businessId, filter),
    oldestFirst: filter.order === 'asc',
  }
  return readPage(sql, list, filter, (row: RunRow & ListedRunRow) => ({
    ...toRunView(row),
    truncated: [...(row.request.cut ? ['prompt'] : []), ...(row.result?.cut ?? [])],
  }))
}

/** What is cut in a row of a list. */
type ListedRunRow = { request: { cut?: boolean }; result: { cut?: string[] } | null }

/** More runs than these make two entries equally frequent. */
const maxCountedRuns = 10_000

/** A table of what runs have: several rows of each. */
type OwnedTable = { table: string; as: string; column: string; type: string }
const metadataTable: OwnedTable = { table: 'run_metadata', as: 'm', column: 'entry', type: 'uuid' }
const wordsTable: OwnedTable = { table: 'run_words', as: 'w', column: 'word', type: 'bigint' }

/** The rows of runs that have all of some values, by the rarest, which is counted: no statistics know two values together. */
const matchAllSql = ({ table, as, column, type }: OwnedTable, values: string, count: number): string =>
  count === 1
    ? `${as}.tenant = $1 AND ${as}.${column} = (${values}::${type}[])[1]`
    : `${as}.tenant = $1 AND ${as}.${column} = (SELECT e FROM unnest(${values}::${type}[]) AS e ORDER BY (SELECT count(*) FROM (
     SELECT FROM ${table} c WHERE c.tenant = $1 AND c.${column} = e LIMIT ${maxCountedRuns}) c) LIMIT 1)
   AND (SELECT count(*) FROM ${table} x WHERE x.tenant = $1 AND x.run_id = ${as}.run_id AND x.${column} = ANY(${values}::${type}[])) = ${count}`

/**
 * The SQL of a filter. An entry of metadata, an error and a node come with the runs' order, so that the index gives a page of a
 * frequent one; an idempotency key is of few runs, which are looked up by their ids.
 */
export const buildRunFilter = (businessId: string, filter: Omit<RunFilter, 'limit' | 'cursor'>) => {
  const values: unknown[] = [businessId]
  const bind = (value: unknown): string => `$${values.push(value)}`
  const entries = toMetadataEntries(filter.metadata)
  const conditions = ['r.tenant = $1']
  if (filter.session_id !== undefined) conditions.push(`r.session_id = ${bind(filter.session_id)}`)
  if (filter.status === 'running') conditions.push(`r.status IN ('running', 'waiting')`)
  else if (filter.status !== undefined) conditions.push(`r.status = ${bind(filter.status)}`)
  // through the sessions of the user: all runs of a session belong to its user
  if (filter.user_id !== undefined)
    conditions.push(
      `r.session_id IN (SELECT session_id FROM sessions WHERE tenant = $1 AND user_id = ${bind(filter.user_id)})`,
    )
  if (filter.idempotency_key !== undefined)
    conditions.push(
      `r.run_id = ANY(ARRAY(SELECT run_id FROM run_requests WHERE tenant = $1 AND idempotency_key = ${bind(filter.idempotency_key)}))`,
    )
  if (filter.finish_reason !== undefined) conditions.push(`r.finish_reason = ${bind(filter.finish_reason)}`)
  if (filter.status_from !== undefined)
    conditions.push(
      `coalesce(r.ended_at, r.started_at, r.created_at) >= to_timestamp(${bind(filter.status_from)}::float8 / 1000)`,
    )
  if (filter.consent !== undefined) conditions.push(`(c.payment_id IS NOT NULL) = ${bind(filter.consent)}`)
  const failures = (['error', 'node'] as const).flatMap((name) =>
    filter[name] === undefined ? [] : [`f.${name} = ${bind(filter[name])}`],
  )
  if (entries.length > 0) conditions.push(matchAllSql(metadataTable, bind(entries), entries.length))
  if (failures.length > 0) conditions.push('f.tenant = $1', ...failures)
  if (filter.model !== undefined) conditions.push('u.tenant = $1', `u.model = ${bind(filter.model)}`)
  const words = filter.q === undefined ? [] : hashSearch(businessId, filter.q)
  if (words.length > 0) conditions.push(matchAllSql(wordsTable, bind(words), words.length))
  const foundBy = [
    ...(words.length > 0 ? [wordsTable] : []),
    ...(entries.length > 0 ? [metadataTable] : []),
    ...(failures.length > 0 ? [{ table: 'run_failures', as: 'f' }] : []),
    ...(filter.model === undefined ? [] : [{ table: 'run_models', as: 'u' }]),
  ]
  const joins = foundBy.map(
    ({ table, as }) => `JOIN ${table} ${as} ON ${as}.tenant = r.tenant AND ${as}.run_id = r.run_id`,
  )
  const lead = foundBy[0]?.as ?? 'r'
  const at = `${lead}.created_at`
  if (filter.from !== undefined) conditions.push(`${at} >= ${bind(filter.from)}::timestamptz`)
  if (filter.to !== undefined) conditions.push(`${at} < ${bind(filter.to)}::timestamptz`)
  if (filter.edge !== undefined)
    conditions.push(`${at} ${filter.order === 'asc' ? '<=' : '>='} ${bind(filter.edge)}::timestamptz`)
  return {
    from: `runs r ${joins.join(' ')} ${runJoins}`,
    at,
    id: `${lead}.run_id`,
    where: conditions.join(' AND '),
    values,
  }
}

/** Ids of the actions of a run: `first_seq` up to, not including, `next_seq`. Both null before its first claim. */
export type SeqRange = { first_seq: number | null; next_seq: number | null }

/** The changes of todos in the actions of a run, in order. */
export const readTodoPatches = async (
  sql: Sql,
  businessId: string,
  sessionId: string,
  { first_seq, next_seq }: SeqRange,
): Promise<Pick<Patch, 'todos'>[]> => {
  if (first_seq === null || next_seq === null) return []
  const { rows } = await sql.query<{ patch: Pick<Patch, 'todos'> }>(
    `SELECT patch FROM actions WHERE tenant = $1 AND session_id = $2 AND seq >= $3 AND seq < $4 AND ${changesTodosSql} ORDER BY seq`,
    [businessId, sessionId, first_seq, next_seq],
  )
  return rows.map(({ patch }) => patch)
}

/** A long session is read in several queries, so that none exceeds the time limit of a statement. */
const rowsPerQuery = 1000
/** Above every id and turn. */
export const lastId = 2_147_483_647

type RowRange = { from?: number; to?: number; columns?: string }

/** The rows of a session in order, from `from` (default: the first) to `to` (default: the last), through the turn `upToTurn`. */
export const readActionRows = async <Row extends ActionRow = ActionRow>(
  sql: Sql,
  businessId: string,
  sessionId: string,
  upToTurn: number,
  { from = 1, to = lastId, columns = 'seq, turn, body, patch' }: RowRange = {},
): Promise<Row[]> => {
  const all: Row[] = []
  for (let next = from; ; ) {
    const { rows } = await sql.query<Row>(
      `SELECT ${columns} FROM actions
       WHERE tenant = $1 AND session_id = $2 AND turn <= $3 AND seq BETWEEN $4 AND $5 ORDER BY seq LIMIT $6`,
      [businessId, sessionId, upToTurn, next, to, rowsPerQuery],
    )
    all.push(...rows)
    const last = rows.at(-1)
    if (!last || rows.length < rowsPerQuery) return all
    next = last.seq + 1
  }
}
