import type { Config } from '../../infra/config.ts'
import type { Database } from '../../infra/database/database.ts'
import { isMasonError } from '../../state/errors.ts'

/** Looks into the database without migrating it; null where another process has its folder. */
export const readDatabase = async <Result>(
  config: Config,
  look: (database: Database) => Promise<Result>,
): Promise<Result | null> => {
  const database = await open(config).catch((error: unknown) => {
    if (isMasonError(error, 'data_dir_locked')) return null
    throw error
  })
  if (database === null) return null
  try {
    return await look(database)
  } finally {
    await database.close()
  }
}

const open = async ({ database }: Config): Promise<Database> => {
  if (database.kind === 'postgres') {
    const { openPostgres } = await import('../../infra/database/postgres.ts')
    return openPostgres({ url: database.url, max: 2, migrate: false })
  }
  const { openEmbedded } = await import('../../infra/database/embedded.ts')
  return openEmbedded(database.kind === 'embedded' ? { dataDir: database.dataDir } : {})
}
