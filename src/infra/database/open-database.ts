import type { Log } from '../../state/ports/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from './database.ts'

/** Opens the database of the settings. The driver of the other kind is never loaded. */
export const openDatabase = async (config: Config, log: Log, loadDataDir?: Blob): Promise<Database> => {
  const { database } = config
  switch (database.kind) {
    case 'postgres': {
      const { openPostgresDatabase } = await import('./postgres.ts')
      return openPostgresDatabase({
        url: database.url,
        max: Math.max(10, config.concurrency + 4),
        onError: (error) => log.warn({ error: error.message }, 'a database connection was lost'),
      })
    }
    case 'embedded': {
      const { openEmbeddedDatabase } = await import('./embedded.ts')
      return openEmbeddedDatabase({ dataDir: database.dataDir, log })
    }
    case 'memory': {
      const { openEmbeddedDatabase } = await import('./embedded.ts')
      return openEmbeddedDatabase({ log, ...(loadDataDir && { loadDataDir }) })
    }
    default:
      throw database satisfies never
  }
}
