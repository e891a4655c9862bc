import { type Gone, mayTell, retellers, type WrittenTalk } from '../../state/memory/retold.ts'
import type { Sql } from '../../state/ports.ts'
import type { Who } from './scope.ts'
import { readShown } from './shown.ts'

/**
 * Clears what is written down of a user's sessions and tells what is gone. `taughtBy`: the runs that taught it. Inside a
 * transaction of the business that holds the user's lock.
 */
export const clearRetold = async (
  sql: Sql,
  who: Who,
  { taughtBy, ...rest }: Omit<Gone, 'teachers'> & { taughtBy: readonly string[] },
): Promise<void> => {
  const { rows } = await sql.query<Omit<WrittenTalk, 'shown'>>(
    `SELECT session_id, summary FROM sessions WHERE tenant = $1 AND user_id = $2 AND summary <> ''`,
    [who.tenant, who.user_id],
  )
  if (rows.length === 0) return
  const gone = { ...rest, teachers: await sessionsOfRuns(sql, who, taughtBy) }
  const written: WrittenTalk[] = []
  // what a session was shown stands in its log alone: that is read only of those that may tell it
  for (const talk of rows)
    written.push({ ...talk, shown: mayTell(talk, gone) ? await readShown(sql, who, talk.session_id) : [] })
  await clear(sql, who, retellers(written, gone))
}

/** Clears what is written down of all sessions of a user. Inside a transaction of the business that holds the user's lock. */
export const clearSummaries = (sql: Sql, who: Who): Promise<unknown> => clear(sql, who, null)

const clear = (sql: Sql, { tenant, user_id }: Who, sessions: readonly string[] | null): Promise<unknown> =>
  sql.query(
    `UPDATE sessions SET summary = '' WHERE tenant = $1 AND session_id IN (
       SELECT session_id FROM sessions WHERE tenant = $1 AND user_id = $2 AND summary <> ''
         AND ($3::json IS NULL OR session_id IN (SELECT json_array_elements_text($3::json)))
       ORDER BY session_id FOR NO KEY UPDATE)`,
    [tenant, user_id, sessions && JSON.stringify(sessions)],
  )

/** Those that hold one of these runs, or a copy of it: a fork has the summary too. */
const sessionsOfRuns = async (
  sql: Sql,
  { tenant, user_id }: Who,
  runIds: readonly string[],
): Promise<string[]> => {
  if (runIds.length === 0) return []
  const { rows } = await sql.query<{ session_id: string }>(
    `WITH RECURSIVE told AS (
       SELECT run_id, session_id FROM runs WHERE tenant = $1 AND run_id IN (SELECT json_array_elements_text($3::json))
       UNION SELECT r.run_id, r.session_id FROM told JOIN sessions s ON s.tenant = $1 AND s.user_id = $2
         JOIN runs r ON r.tenant = $1 AND r.session_id = s.session_id AND r.parent_run_id = told.run_id
     ) SELECT DISTINCT session_id FROM told`,
    [tenant, user_id, JSON.stringify(runIds)],
  )
  return rows.map(({ session_id }) => session_id)
}
