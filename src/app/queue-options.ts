import type { Config } from '../infra/config/config.ts'
import type { Database } from '../infra/database/database.ts'
import { ensureDatabaseId } from '../infra/database/database-id.ts'

/** What carries wake-ups and jobs: Redis if it is set, else this process. */
export const toQueueOptions = async ({ redisUrl, queuePrefix }: Config, database: Database) => {
  if (redisUrl === null) return { kind: 'embedded' as const }
  const databaseId = await ensureDatabaseId(database)
  return { kind: 'redis' as const, url: redisUrl, prefix: queuePrefix, databaseId }
}
