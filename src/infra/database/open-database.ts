import type { Log } from '../../state/ports/log.ts'
import type { Config } from '../config/config.ts'
import { paymentSettings } from '../config/payment-settings.ts'
import type { Database, ProcessDatabases, ServerSchema } from './database.ts'
import { loginRoles } from './login-roles.ts'
import { toRoleDatabase } from './role-database.ts'

/**
 * Opens the database of the settings. The driver of the other kind is never loaded. An embedded database is always
 * migrated; `loadDataDir` is what one in memory begins with. Logs a warning where row-level security does not bind a login.
 */
export const openDatabases = async (
  { database, concurrency }: Config,
  log: Log,
  { loadDataDir, schema = 'check' }: { loadDataDir?: Uint8Array | undefined; schema?: ServerSchema } = {},
): Promise<ProcessDatabases> => {
  if (database.kind === 'postgres') {
    const { openServerDatabases } = await import('./server-databases.ts')
    const onError = (error: Error): void =>
      log.warn({ error: error.message }, 'a database connection was lost')
    return openServerDatabases(database, { schema, max: Math.max(10, concurrency + 4), onError, log })
  }
  const { openEmbeddedDatabase } = await import('./embedded.ts')
  const opened =
    database.kind === 'embedded'
      ? await openEmbeddedDatabase({ dataDir: database.dataDir, log })
      : await openEmbeddedDatabase({ log, ...(loadDataDir && { loadDataDir }) })
  const { plain } = loginRoles[paymentSettings.url]
  return {
    api: opened,
    worker: opened,
    payments: toRoleDatabase(opened, plain),
    close: () => opened.close(),
  }
}

/** Like `openDatabases`, for a command that needs one database and not the parts of a process. */
export const openDatabase = async (
  config: Config,
  log: Log,
  options?: Parameters<typeof openDatabases>[2],
): Promise<Database> => {
  const { api, close } = await openDatabases(config, log, options)
  return { ...api, close }
}
