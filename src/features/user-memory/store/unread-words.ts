import type { Sql } from '../../../state/ports/sql.ts'

/** Memories that one statement reads. */
const batchSize = 500

/** Of one user, the latest first: a memory that is older has a lower number. */
const readStatement = `
  WITH one AS (SELECT tenant, user_id FROM memories WHERE number IS NULL AND superseded_by IS NULL LIMIT 1), unread AS (
    SELECT m.tenant, m.memory_id FROM memories m JOIN one USING (tenant, user_id)
    WHERE m.number IS NULL AND m.superseded_by IS NULL ORDER BY m.created_at DESC LIMIT ${batchSize} FOR UPDATE OF m SKIP LOCKED
  ), numbered AS (SELECT tenant, memory_id, -nextval('memory_numbers') AS number FROM unread)
  UPDATE memories m SET number = n.number FROM numbered n WHERE m.tenant = n.tenant AND m.memory_id = n.memory_id
  RETURNING m.memory_id`

/**
 * Reads the words of some memories that an earlier version wrote, so that searches find them by an index; returns how many. A
 * trigger does it for every other. Several workers may read at once.
 */
export const readUnreadMemories = async (database: Sql): Promise<number> =>
  (await database.query(readStatement)).rows.length
