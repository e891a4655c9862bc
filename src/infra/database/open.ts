import type { Log } from '../../state/ports.ts'
import type { Config } from '../config.ts'
import type { Database } from './database.ts'

/** The database the settings name. The driver of the other kind is never loaded. */
export const openDatabase = async (config: Config, log: Log, loadDataDir?: Blob): Promise<Database> => {
  const { database } = config
  switch (database.kind) {
    case 'postgres': {
      const { openPostgres } = await import('./postgres.ts')
      return openPostgres({
        url: database.url,
        max: Math.max(10, config.concurrency + 4),
        onError: (error) => log.warn({ error: error.message }, 'a database connection was lost'),
      })
    }
    case 'embedded': {
      const { openEmbedded } = await import('./embedded.ts')
      return openEmbedded({ dataDir: database.dataDir, log })
    }
    case 'memory': {
      const { openEmbedded } = await import('./embedded.ts')
      return openEmbedded({ log, ...(loadDataDir && { loadDataDir }) })
    }
    default:
      throw database satisfies never
  }
}
