import { talkIn } from '../../state/memory/earlier-talk.ts'
import type { Patch } from '../../state/patch.ts'
import type { Sql } from '../../state/ports.ts'
import type { ActionBody } from '../../state/runtime-state.ts'
import type { Source } from './remember.ts'
import type { Who } from './scope.ts'

/** What tells an action that recalled something, in the text that `checkpoint` writes. */
const recalls = `a.body::text LIKE '%"node":"recall%'`

type Recall = {
  body: {
    result: { recalled?: { id: string }[]; memory_ids?: string[]; text?: string } & ActionBody['result']
  }
  patch: Pick<Patch, 'memory'>
}

/** The memories and earlier talks that a session was shown, by their ids. */
export const readShown = async (sql: Sql, { tenant }: Who, sessionId: string): Promise<string[]> => {
  const { rows } = await sql.query<Pick<Recall, 'body'>>(
    `SELECT a.body FROM actions a WHERE a.tenant = $1 AND a.session_id = $2 AND ${recalls}`,
    [tenant, sessionId],
  )
  return rows.flatMap(idsOf)
}

const idsOf = ({ body: { result } }: Pick<Recall, 'body'>): string[] => [
  ...(result.recalled ?? []).map(({ id }) => id),
  ...(result.memory_ids ?? []),
]

/** A turn recalls before its planner first speaks: among so many of its actions. */
const preparing = 32

/**
 * What a session was shown at the beginning of its turns, and in all of this run, and is forgotten or deleted by now: its
 * words. A model may say it on, since the log still has it. Inside a transaction that holds the user's lock.
 */
export const readLost = async (
  sql: Sql,
  { tenant }: Who,
  { session_id, run_id }: Source,
): Promise<string[]> => {
  const { rows } = await sql.query<Recall>(
    `SELECT a.body, a.patch FROM runs r JOIN actions a ON a.tenant = r.tenant AND a.session_id = r.session_id
       AND a.seq >= r.first_seq AND a.seq < r.next_seq AND (r.run_id = $3 OR a.seq < r.first_seq + ${preparing})
     WHERE r.tenant = $1 AND r.session_id = $2 AND ${recalls}`,
    [tenant, session_id, run_id],
  )
  const gone = await goneOf(sql, tenant, rows.flatMap(idsOf))
  return rows.flatMap(({ body: { result }, patch }) => [
    ...(patch.memory ?? []).filter(({ id }) => gone.has(id)).map(({ content }) => content),
    // all that it found
    ...((result.memory_ids ?? []).some((id) => gone.has(id)) && result.text ? [result.text] : []),
  ])
}

/** Which of these memories and talks are not there any more. A talk was written down when it was shown: else it was cleared since. */
export const goneOf = async (sql: Sql, tenant: string, ids: readonly string[]): Promise<Set<string>> => {
  if (ids.length === 0) return new Set()
  const { rows } = await sql.query<{ id: string }>(
    `SELECT memory_id AS id FROM memories WHERE tenant = $1 AND memory_id IN (SELECT json_array_elements_text($2::json))
     UNION ALL SELECT session_id FROM sessions
     WHERE tenant = $1 AND session_id IN (SELECT json_array_elements_text($3::json)) AND summary <> ''`,
    [tenant, JSON.stringify(ids), JSON.stringify(ids.flatMap((id) => talkIn(id) ?? []))],
  )
  const there = new Set(rows.map(({ id }) => id))
  return new Set(ids.filter((id) => !there.has(talkIn(id) ?? id)))
}
