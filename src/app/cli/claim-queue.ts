import type { Environment } from '../../infra/config/config.ts'
import { ensureDatabaseId } from '../../infra/database/database-id.ts'
import { openDatabase } from '../../infra/database/open-database.ts'
import { takeOverQueue } from '../../infra/queue/queue-owner.ts'
import { toSettingsError } from '../../state/errors.ts'
import { readConfig } from '../read-config.ts'
import { describeDatabase, describeQueue } from './banner.ts'
import { exitCodes } from './errors.ts'
import { createLog } from './log.ts'
import { withRedis } from './redis-command.ts'

/** `mason queue claim`: the queue prefix belongs to the database of the settings from now on. Returns the exit code. */
export const claimQueue = async (env: Environment): Promise<number> => {
  const config = readConfig(env, { role: 'queue' })
  const { redisUrl, queuePrefix } = config
  if (redisUrl === null)
    throw toSettingsError(
      'there is no queue to claim: with an embedded database the process wakes itself',
      'set DATABASE_URL and REDIS_URL to the servers of this Mason',
    )
  const database = await openDatabase(config, createLog(config.logLevel))
  try {
    const databaseId = await ensureDatabaseId(database)
    const previous = await withRedis(redisUrl, (redis) =>
      takeOverQueue(redis, { prefix: queuePrefix, databaseId }),
    )
    process.stdout.write(
      `${describeQueue(config)} belongs to ${databaseId} (${describeDatabase(config)})\n${describePrevious(previous, databaseId)}\n`,
    )
    return exitCodes.done
  } finally {
    await database.close()
  }
}

const describePrevious = (previous: string | null, databaseId: string): string => {
  if (previous === databaseId) return 'it did so before: nothing has changed'
  if (previous === null) return 'it belonged to no database before'
  return `this replaces ${previous}: jobs that wait there are admitted here, and its processes take no more of them`
}
