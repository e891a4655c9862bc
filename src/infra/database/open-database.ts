import type { Log } from '../../state/ports/log.ts'
import type { Config } from '../config/config.ts'
import type { Database, ProcessDatabases, ServerSchema } from './database.ts'
import { loginRoles } from './login-roles.ts'
import type { Migration } from './migration.ts'
import { toRoleDatabase } from './role-database.ts'

/** `loadDataDir` is what a database in memory begins with, `migrations` are all of them; absent: those of this package. */
type OpenOptions = {
  loadDataDir?: Uint8Array | undefined
  migrations?: readonly Migration[] | undefined
  schema?: ServerSchema
}

/**
 * Opens the database of the settings. The driver of the other kind is never loaded. An embedded database is always
 * migrated. Logs a warning where row-level security does not bind a login.
 */
export const openDatabases = async (
  { database, concurrency }: Config,
  log: Log,
  { loadDataDir, migrations, schema = 'check' }: OpenOptions = {},
): Promise<ProcessDatabases> => {
  if (database.kind === 'postgres') {
    const { openServerDatabases } = await import('./server-databases.ts')
    const onError = (error: Error): void =>
      log.warn({ error: error.message }, 'a database connection was lost')
    const max = Math.max(10, concurrency + 4)
    return openServerDatabases(database, { schema, migrations, max, onError, log })
  }
  const { openEmbeddedDatabase } = await import('./embedded.ts')
  const opened = await openEmbeddedDatabase(
    database.kind === 'embedded'
      ? { dataDir: database.dataDir, migrations, log }
      : { loadDataDir, migrations, log },
  )
  const payments = toRoleDatabase(opened, loginRoles.payments.plain)
  return { api: opened, worker: opened, payments, close: () => opened.close() }
}

/** Like `openDatabases`, for a command that needs one database and not the parts of a process. */
export const openDatabase = async (config: Config, log: Log, options?: OpenOptions): Promise<Database> => {
  const { api, close } = await openDatabases(config, log, options)
  return { ...api, close }
}
