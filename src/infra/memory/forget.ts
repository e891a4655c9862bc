import type { GoneMemory } from '../../state/memory/learned.ts'
import type { Sql } from '../../state/ports.ts'
import { type Database, one } from '../database/database.ts'
import { giveUpUser } from './distil-queue.ts'
import { unlearnAll, unlearnMemories } from './learn-profile.ts'
import { lockUser } from './remember.ts'
import { asAllUsers, asUser, type Who } from './scope.ts'
import { clearRetold, clearSummaries } from './summaries.ts'

/**
 * Forgets one memory for good, with those it took the place of, the fields of the profile that say the same, what the user's
 * runs so far were about to teach, and the summaries that tell it. False: the business has none of this id.
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
    const gone = await deleteMemory(sql, who, id)
    if (gone.length === 0) return false
    await giveUpUser(sql, who)
    const values = await unlearnMemories(sql, who, gone)
    const taughtBy = gone.flatMap(({ run_ids }) => run_ids)
    await clearRetold(sql, who, { memories: gone, values, taughtBy })
    return true
  })

/** A memory, and all that it took the place of, also through others. */
const deleteMemory = async (
  sql: Sql,
  { tenant }: Who,
  id: string,
): Promise<(GoneMemory & { id: string })[]> => {
  const { rows } = await sql.query<GoneMemory & { id: string }>(
    `WITH RECURSIVE gone AS (
       SELECT memory_id FROM memories WHERE tenant = $1 AND memory_id = $2
       UNION SELECT m.memory_id FROM memories m JOIN gone ON m.superseded_by = gone.memory_id WHERE m.tenant = $1
     ), deleted AS (
       DELETE FROM memories WHERE tenant = $1 AND memory_id IN (SELECT memory_id FROM gone)
       RETURNING memory_id, content, subject
     ) SELECT d.memory_id AS id, d.content, d.subject, ARRAY(SELECT s.run_id FROM memory_sources s
         WHERE s.tenant = $1 AND s.memory_id = d.memory_id) AS run_ids FROM deleted d`,
    [tenant, id],
  )
  return rows
}

/**
 * Forgets all that was remembered and learned of a user, the summaries of his sessions, and what his runs so far were about
 * to teach. The sessions themselves, and what an admin has set of his profile, stay. Safe to call twice.
 */
export const forgetUser = (database: Database, who: Who): Promise<void> =>
  asUser(database, who, async (sql) => {
    await lockUser(sql, who)
    await giveUpUser(sql, who)
    await sql.query('DELETE FROM memories WHERE tenant = $1 AND user_id = $2', [who.tenant, who.user_id])
    await unlearnAll(sql, who)
    await clearSummaries(sql, who)
  })
