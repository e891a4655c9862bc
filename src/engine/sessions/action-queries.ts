import { queryOne } from '../../infra/database/database.ts'
import { maxPageBytes } from '../../infra/database/pagination.ts'
import { groupBy } from '../../infra/lib/group-by.ts'
import { toMoney } from '../../infra/lib/money.ts'
import { noCurrency } from '../../models/metering/ledger-rows.ts'
import type { Patch } from '../../state/patch.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { ActionEvent, ActionView } from '../../state/run-view.ts'
import type { ActionBody } from '../../state/runtime-state.ts'
import { changesTodosSql } from '../runs/run-queries.ts'

/** An action as it is stored. */
export type StoredAction = {
  seq: number
  run_id: string
  turn: number
  body: ActionBody
  created_at: Date
  ms: number | null
  epoch: number
  worker: string | null
}
const columns = 'seq, run_id, turn, body, created_at, ms, epoch, worker'

/** An action as event streams read it; `patch` only where it changes todos. */
export type EventRow = StoredAction & { patch: Pick<Patch, 'todos'> | null }

type SessionScope = { business_id: string; session_id: string }

/** What the API shows of an action. */
export const toActionEvent = (row: StoredAction): ActionEvent => {
  const { seq, body, run_id, turn, created_at, ms, epoch, worker } = row
  return {
    id: seq,
    ...body,
    run_id,
    turn,
    at: created_at.toISOString(),
    started_at: ms === null ? null : new Date(created_at.getTime() - ms).toISOString(),
    ms,
    attempt: epoch === 0 ? null : epoch,
    worker,
  }
}

/** A page has at most $3 actions, and `maxPageBytes` but for its first. It begins at the end where `order` does. */
const buildPageStatement = (filter: string, order: 'seq' | 'seq DESC', own: string): string => `
  SELECT ${columns}, ${own}, found FROM (
    SELECT *, (count(*) OVER ())::int AS found, row_number() OVER (ORDER BY ${order}) AS place,
      sum(octet_length(body::text) + octet_length(patch::text)) OVER (ORDER BY ${order}) AS page_bytes
    FROM (SELECT * FROM actions WHERE tenant = $1 AND session_id = $2 AND ${filter} ORDER BY ${order} LIMIT $3) a) a
  WHERE place = 1 OR page_bytes <= ${maxPageBytes} ORDER BY seq`

const readRows = async <Row extends object>(
  sql: Sql,
  statement: string,
  { business_id, session_id }: SessionScope,
  limit: number,
  values: readonly unknown[],
): Promise<{ rows: Row[]; more: boolean }> => {
  const all = [business_id, session_id, limit, ...values]
  const { rows } = await sql.query<Row & { found: number }>(statement, all)
  const found = rows[0]?.found ?? 0
  return {
    rows: rows.map(({ found: _, ...row }) => row as Row),
    more: found === limit || found > rows.length,
  }
}

const inRunSql = `seq >= (SELECT first_seq FROM runs WHERE tenant = $1 AND run_id = $5)
  AND seq < (SELECT next_seq FROM runs WHERE tenant = $1 AND run_id = $5)`
const todosSql = `CASE WHEN ${changesTodosSql} THEN patch END AS patch`
const ofSession = buildPageStatement('seq > $4::bigint', 'seq', todosSql)
const ofRun = buildPageStatement(`seq > $4::bigint AND ${inRunSql}`, 'seq', todosSql)

/** Actions of a session, or of one of its runs, after an id. */
export const readActionsAfter = (
  sql: Sql,
  source: SessionScope & { run_id?: string },
  after: number,
  limit: number,
): Promise<{ rows: EventRow[]; more: boolean }> =>
  source.run_id
    ? readRows(sql, ofRun, source, limit, [after, source.run_id])
    : readRows(sql, ofSession, source, limit, [after])

/** Which actions a page has: the first after `after`, or the last before `before` alone. */
export type ActionFilter = { after?: number; before?: number; turn?: number; node?: string; limit: number }

// the node is the first member of every body; the operators of json reject documents with a NUL in them
const matchesSql = `($4::bigint IS NULL OR seq > $4) AND ($5::bigint IS NULL OR seq < $5) AND ($6::int IS NULL OR turn = $6)
  AND ($7::text IS NULL OR starts_with(body::text, '{"node":"' || $7 || '"'))`
const firstPage = buildPageStatement(matchesSql, 'seq', 'visit_id')
const lastPage = buildPageStatement(matchesSql, 'seq DESC', 'visit_id')

type Visited = { run_id: string; visit_id: string | null }

/** A page of the actions of a session, in their order. `has_more`: there are more on the side that the page grows to. */
export const listActions = async (
  sql: Sql,
  scope: SessionScope,
  { after, before, turn, node, limit }: ActionFilter,
): Promise<{ data: ActionView[]; has_more: boolean }> => {
  const statement = before !== undefined && after === undefined ? lastPage : firstPage
  const { rows, more } = await readRows<StoredAction & Visited>(sql, statement, scope, limit + 1, [
    after ?? null,
    before ?? null,
    turn ?? null,
    node ?? null,
  ])
  const page = statement === lastPage ? rows.slice(-limit) : rows.slice(0, limit)
  const callsOf = await readModelCalls(sql, scope.business_id, page)
  return { data: page.map((row) => ({ ...toActionEvent(row), model_calls: callsOf(row) })), has_more: more }
}

/** An action with what it changed in the state, or null. */
export const readAction = async (
  sql: Sql,
  { business_id, session_id }: SessionScope,
  id: number,
): Promise<(ActionView & { patch: Patch }) | null> => {
  const row = await queryOne<StoredAction & Visited & { patch: Patch }>(
    sql,
    `SELECT ${columns}, visit_id, patch FROM actions WHERE tenant = $1 AND session_id = $2 AND seq = $3`,
    [business_id, session_id, id],
  )
  if (!row) return null
  const callsOf = await readModelCalls(sql, business_id, [row])
  return { ...toActionEvent(row), model_calls: callsOf(row), patch: row.patch }
}

type CallRow = Omit<ActionView['model_calls'][number], 'at' | 'cost'> & {
  visit_id: string
  at: Date
  cost_micro: string
}

/** The requests to vendors of some visits, by the visit. The ledger is found by run: no visit is longer than its run. */
const readModelCalls = async (
  sql: Sql,
  businessId: string,
  visited: readonly Visited[],
): Promise<(action: Visited) => ActionView['model_calls']> => {
  const visits = visited.flatMap(({ visit_id }) => visit_id ?? [])
  if (visits.length === 0) return () => []
  const { rows } = await sql.query<CallRow>(
    `SELECT l.visit_id, l.at, l.role, l.model_name AS model, v.name AS vendor, l.status, l.error_code, l.ms,
       l.total_tokens::float8 AS tokens, l.cost_micro::text AS cost_micro, NULLIF(l.currency, '${noCurrency}') AS currency
       FROM usage_ledger l LEFT JOIN vendors v USING (vendor_id)
       WHERE l.tenant = $1 AND l.run_id = ANY($2) AND l.visit_id = ANY($3) ORDER BY l.usage_id`,
    [businessId, [...new Set(visited.map(({ run_id }) => run_id))], visits],
  )
  const byVisit = groupBy(rows, ({ visit_id }) => visit_id)
  return ({ visit_id }) =>
    (byVisit.get(visit_id ?? '') ?? []).map(({ visit_id: _, at, cost_micro, ...call }) => ({
      ...call,
      at: at.toISOString(),
      cost: toMoney(cost_micro),
    }))
}
