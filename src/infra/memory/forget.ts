import type { GoneMemory } from '../../state/memory/learned.ts'
import type { Sql } from '../../state/ports.ts'
import { type Database, one } from '../database/database.ts'
import { dropDistillations, dropRuns } from './distil-queue.ts'
import { unlearnAll, unlearnMemories } from './learn-profile.ts'
import { lockUser } from './remember.ts'
import { asAllUsers, asUser, type Who } from './scope.ts'

/** A memory, and all that it took the place of, also through others. */
const goneStatement = `WITH RECURSIVE gone AS (
  SELECT memory_id FROM memories WHERE tenant = $1 AND memory_id = $2
  UNION SELECT m.memory_id FROM memories m JOIN gone ON m.superseded_by = gone.memory_id WHERE m.tenant = $1
)`

/**
 * Forgets one memory for good, with those it took the place of, the fields of the profile that say the same, what its runs
 * were about to teach, and the summaries of the sessions they stand in. False: the business has none of this id.
 */
export const forgetMemory = async (database: Database, tenant: string, id: string): Promise<boolean> => {
  const gone = await asAllUsers(database, tenant, (sql) => deleteMemory(sql, tenant, id))
  if (!gone) return false
  const { who, runIds } = gone
  await clearSummaries(database, who, runIds)
  return true
}

/** The runs that taught it; null: there is none. */
const deleteMemory = async (
  sql: Sql,
  tenant: string,
  id: string,
): Promise<{ who: Who; runIds: string[] } | null> => {
  const owner = await one<{ user_id: string }>(
    sql,
    'SELECT user_id FROM memories WHERE tenant = $1 AND memory_id = $2',
    [tenant, id],
  )
  if (!owner) return null
  const who = { tenant, ...owner }
  const sources = await sql.query<{ run_id: string }>(
    `${goneStatement} SELECT s.run_id FROM memory_sources s JOIN gone USING (memory_id) WHERE s.tenant = $1`,
    [tenant, id],
  )
  const taughtBy = sources.rows.map(({ run_id }) => run_id)
  // before the lock on the user, as who learns takes them
  await dropRuns(sql, tenant, taughtBy)
  await lockUser(sql, who)
  const { rows } = await sql.query<GoneMemory>(
    `${goneStatement}, deleted AS (
       DELETE FROM memories WHERE tenant = $1 AND memory_id IN (SELECT memory_id FROM gone)
       RETURNING memory_id, content, subject
     ) SELECT d.content, d.subject, ARRAY(SELECT s.run_id FROM memory_sources s
         WHERE s.tenant = $1 AND s.memory_id = d.memory_id) AS run_ids FROM deleted d`,
    [tenant, id],
  )
  if (rows.length === 0) return null
  await unlearnMemories(sql, who, rows)
  return { who, runIds: rows.flatMap(({ run_ids }) => run_ids) }
}

/** Those that hold one of the runs of $3, or a copy of it: a fork has the summary too. */
const sessionsOfRuns = `
  WITH RECURSIVE told AS (
    SELECT run_id, session_id FROM runs WHERE tenant = $1 AND run_id IN (SELECT json_array_elements_text($3::json))
    UNION SELECT r.run_id, r.session_id FROM told JOIN sessions s ON s.tenant = $1 AND s.user_id = $2
      JOIN runs r ON r.tenant = $1 AND r.session_id = s.session_id AND r.parent_run_id = told.run_id
  ) SELECT session_id FROM told`

/** Of all sessions of a user, or of those that hold these runs. By itself: who deletes a session holds it, and waits for the user. */
const clearSummaries = (database: Database, who: Who, runIds?: readonly string[]): Promise<unknown> =>
  asUser(database, who, (sql) =>
    sql.query(
      `UPDATE sessions SET summary = '' WHERE tenant = $1 AND session_id IN (
         SELECT session_id FROM sessions WHERE tenant = $1 AND user_id = $2 AND summary <> ''
           ${runIds ? `AND session_id IN (${sessionsOfRuns})` : ''} ORDER BY session_id FOR NO KEY UPDATE)`,
      [who.tenant, who.user_id, ...(runIds ? [JSON.stringify(runIds)] : [])],
    ),
  )

/**
 * Forgets all that was remembered and learned of a user, the summaries of his sessions, and what was about to be learned of
 * runs that have ended. The sessions themselves, and what an admin has set of his profile, stay. Safe to call twice.
 */
export const forgetUser = async (database: Database, who: Who): Promise<void> => {
  const values = [who.tenant, who.user_id]
  await asUser(database, who, async (sql) => {
    await dropDistillations(sql, who.tenant, 'user_id', who.user_id)
    await lockUser(sql, who)
    await sql.query('DELETE FROM memories WHERE tenant = $1 AND user_id = $2', values)
    await unlearnAll(sql, who)
  })
  await clearSummaries(database, who)
}
