import { groupBy } from '../../../infra/lib/group-by.ts'
import type { Patch } from '../../../state/patch.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { ActionBody } from '../../../state/runtime-state.ts'
import { parseSessionMemoryId, toSessionMemoryId } from '../policy/turn-ids.ts'
import type { NoteSource } from './remember.ts'
import type { MemoryOwner } from './user-scope.ts'

/** Matches an action that recalled something, in the text that `checkpoint` writes. */
const recallCondition = `a.body::text LIKE '%"node":"recall%'`

type RecallRow = {
  body: {
    result: { recalled?: { id: string }[]; memory_ids?: string[]; text?: string } & ActionBody['result']
  }
  patch: Pick<Patch, 'memory'>
}

/** The ids of the memories and turns that each of these sessions recalled. */
export const readRecalledIds = async (
  sql: Sql,
  { business }: MemoryOwner,
  sessionIds: readonly string[],
): Promise<Map<string, string[]>> => {
  if (sessionIds.length === 0) return new Map()
  const { rows } = await sql.query<Pick<RecallRow, 'body'> & { session_id: string }>(
    `SELECT a.session_id, a.body FROM actions a WHERE a.tenant = $1
       AND a.session_id IN (SELECT json_array_elements_text($2::json)) AND ${recallCondition}`,
    [business, JSON.stringify(sessionIds)],
  )
  const bySession = groupBy(rows, ({ session_id }) => session_id)
  return new Map([...bySession].map(([id, actions]) => [id, actions.flatMap(listRecalledIds)]))
}

const listRecalledIds = ({ body: { result } }: Pick<RecallRow, 'body'>): string[] => [
  ...(result.recalled ?? []).map(({ id }) => id),
  ...(result.memory_ids ?? []),
]

/** A turn recalls before its planner's first reply: within this many of its actions. */
const maxPrepareActions = 32

/**
 * The texts that sessions recalled, at the start of each turn and anywhere in these runs, and that are forgotten by now, by
 * session. A model may repeat them, since the log still has them. Inside a transaction that holds the user's lock.
 * Session by session, as the index of actions is: joined as a whole, PostgreSQL scans all actions for each.
 */
export const readForgottenTexts = async (
  sql: Sql,
  { business }: MemoryOwner,
  sources: readonly NoteSource[],
): Promise<Map<string, string[]>> => {
  const { rows } = await sql.query<RecallRow & { session_id: string }>(
    `SELECT l.session_id, a.body, a.patch FROM json_to_recordset($2::json) AS l(session_id text, run_id text) CROSS JOIN LATERAL (
       SELECT a.body, a.patch FROM runs r JOIN actions a ON a.tenant = r.tenant AND a.session_id = r.session_id
         AND a.seq >= r.first_seq AND a.seq < r.next_seq AND (r.run_id = l.run_id OR a.seq < r.first_seq + ${maxPrepareActions})
       WHERE r.tenant = $1 AND r.session_id = l.session_id AND ${recallCondition} OFFSET 0) a`,
    [business, JSON.stringify(sources)],
  )
  const forgotten = await findForgottenIds(sql, business, rows.flatMap(listRecalledIds))
  const listForgotten = ({ body: { result }, patch }: RecallRow): string[] => [
    ...(patch.memory ?? []).filter(({ id }) => forgotten.has(id)).map(({ content }) => content),
    // the whole result of a search
    ...((result.memory_ids ?? []).some((id) => forgotten.has(id)) && result.text ? [result.text] : []),
  ]
  const bySession = groupBy(rows, ({ session_id }) => session_id)
  return new Map([...bySession].map(([id, of]) => [id, of.flatMap(listForgotten)]))
}

/** Which of these memories and turns no longer exist. `% 1 = 0`: as in `holdSessions`. */
export const findForgottenIds = async (
  sql: Sql,
  business: string,
  ids: readonly string[],
): Promise<Set<string>> => {
  if (ids.length === 0) return new Set()
  const turns = ids.flatMap((id) => parseSessionMemoryId(id) ?? [])
  const { rows } = await sql.query<{ id: string | null; session_id: string; turn: number }>(
    `SELECT memory_id AS id, '' AS session_id, 0 AS turn FROM memories
       WHERE tenant = $1 AND memory_id = ANY(ARRAY(SELECT json_array_elements_text($2::json)))
     UNION ALL SELECT NULL, t.session_id, t.turn FROM json_to_recordset($3::json) AS l(session_id text, turn int)
       JOIN turns t ON t.tenant = $1 AND t.session_id = l.session_id AND t.turn = l.turn WHERE l.turn % 1 = 0`,
    [business, JSON.stringify(ids), JSON.stringify(turns)],
  )
  const present = new Set(rows.map(({ id, session_id, turn }) => id ?? toSessionMemoryId(session_id, turn)))
  return new Set(ids.filter((id) => !present.has(id)))
}
