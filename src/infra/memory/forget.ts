import type { GoneMemory } from '../../state/memory/learned.ts'
import { type Database, one } from '../database/database.ts'
import { dropDistillations } from './distil-queue.ts'
import { unlearnAll, unlearnMemories } from './learn-profile.ts'
import { lockUser } from './remember.ts'
import { asAllUsers, asUser, type Who } from './scope.ts'

/**
 * Forgets one memory for good, with those it took the place of and the fields of the profile that say the same. False:
 * the business has none of this id.
 */
export const forgetMemory = (database: Database, tenant: string, id: string): Promise<boolean> =>
  asAllUsers(database, tenant, async (sql) => {
    const owner = await one<{ user_id: string }>(
      sql,
      'SELECT user_id FROM memories WHERE tenant = $1 AND memory_id = $2',
      [tenant, id],
    )
    if (!owner) return false
    const who = { tenant, ...owner }
    await lockUser(sql, who)
    const { rows } = await sql.query<GoneMemory>(
      `WITH RECURSIVE gone AS (
         SELECT memory_id FROM memories WHERE tenant = $1 AND memory_id = $2
         UNION SELECT m.memory_id FROM memories m JOIN gone ON m.superseded_by = gone.memory_id WHERE m.tenant = $1
       ), deleted AS (
         DELETE FROM memories WHERE tenant = $1 AND memory_id IN (SELECT memory_id FROM gone)
         RETURNING memory_id, content, subject
       ) SELECT d.content, d.subject, ARRAY(SELECT s.run_id FROM memory_sources s
           WHERE s.tenant = $1 AND s.memory_id = d.memory_id) AS run_ids FROM deleted d`,
      [tenant, id],
    )
    if (rows.length > 0) await unlearnMemories(sql, who, rows)
    return rows.length > 0
  })

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
  // by itself: who deletes a session holds it, and waits for the user
  await asUser(database, who, (sql) =>
    sql.query(
      `UPDATE sessions SET summary = '' WHERE tenant = $1 AND session_id IN (
         SELECT session_id FROM sessions WHERE tenant = $1 AND user_id = $2 AND summary <> ''
         ORDER BY session_id FOR NO KEY UPDATE)`,
      values,
    ),
  )
}
