import type { Log } from '../../state/ports/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from './database.ts'

/**
 * Opens the database of the settings. The driver of the other kind is never loaded. A server is migrated unless `migrate`
 * is false; an embedded database always is. `loadDataDir` is what one in memory begins with.
 */
export const openDatabase = async (
  { database, concurrency }: Config,
  log: Log,
  { loadDataDir, migrate = true }: { loadDataDir?: Blob | undefined; migrate?: boolean } = {},
): Promise<Database> => {
  if (database.kind === 'postgres') {
    const { openPostgresDatabase } = await import('./postgres.ts')
    return openPostgresDatabase({
      url: database.url,
      max: Math.max(10, concurrency + 4),
      migrate,
      onError: (error) => log.warn({ error: error.message }, 'a database connection was lost'),
    })
  }
  const { openEmbeddedDatabase } = await import('./embedded.ts')
  if (database.kind === 'embedded') return openEmbeddedDatabase({ dataDir: database.dataDir, log })
  return openEmbeddedDatabase({ log, ...(loadDataDir && { loadDataDir }) })
}
