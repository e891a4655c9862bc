import pg from 'pg'
import type { Database } from '../../src/infra/database/database.ts'
import type { EmbeddedDatabase } from '../../src/infra/database/embedded.ts'
import type { Backend } from './backend.ts'

/** Runs SQL as who owns the tables: what a process may not do, and ANALYZE, which leaves out the tables of others without an error. */
export const asOwner = async (backend: Backend, database: Database, text: string): Promise<void> => {
  if (backend.config.database.kind === 'postgres') {
    const client = new pg.Client({ connectionString: backend.config.database.url })
    await client.connect()
    await client.query(text).finally(() => client.end())
    return
  }
  const { pglite } = database as EmbeddedDatabase
  await pglite.exec('RESET ROLE')
  await pglite.exec(text).finally(() => pglite.exec('SET ROLE mason_worker'))
}
