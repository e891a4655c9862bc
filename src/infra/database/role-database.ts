import type { Sql } from '../../state/ports/sql.ts'
import type { Database } from './database.ts'

/** A database whose plain statements and transactions run under another role of its session. Closing it closes nothing. */
export const toRoleDatabase = (database: Database, role: string): Database => {
  const transaction: Database['transaction'] = (work, { pipelined: _, ...options } = {}) =>
    database.transaction(async (sql: Sql) => {
      await sql.query(`SET LOCAL ROLE ${role}`)
      return work(sql)
    }, options)
  return {
    ...database,
    transaction,
    query: (text, values) => transaction((sql) => sql.query(text, values)),
    close: async () => {},
  }
}
