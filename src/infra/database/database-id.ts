import type { Sql } from '../../state/ports/sql.ts'
import { newDatabaseId } from '../lib/ids.ts'
import { queryOne } from './database.ts'

/** The id of this database, made when it is first asked for. A restored backup keeps it. */
export const ensureDatabaseId = async (sql: Sql): Promise<string> => {
  // the update writes nothing new: it returns the row of whichever process was first
  const row = await queryOne<{ id: string }>(
    sql,
    `INSERT INTO database_identity AS known (id) VALUES ($1)
     ON CONFLICT (only_row) DO UPDATE SET id = known.id RETURNING id`,
    [newDatabaseId()],
  )
  return (row as { id: string }).id
}

/** The id of this database; null where no served process has used it yet. */
export const readDatabaseId = async (sql: Sql): Promise<string | null> =>
  (await queryOne<{ id: string }>(sql, 'SELECT id FROM database_identity', []))?.id ?? null
