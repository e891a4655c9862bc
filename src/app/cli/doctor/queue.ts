import { readDatabaseId } from '../../../infra/database/database-id.ts'
import { stripCredentials } from '../../../infra/lib/strip-credentials.ts'
import { describeForeignQueue, readQueueOwner } from '../../../infra/queue/queue-owner.ts'
import { isMasonError } from '../../../state/errors.ts'
import { withRedis } from '../redis-command.ts'
import { type DoctorCheck, type DoctorFinding, fail, pass } from './check.ts'
import { withUnmigratedDatabase } from './database.ts'

/** Whether Redis responds and never evicts jobs. */
export const checkQueue: DoctorCheck = async ({ redisUrl }) => {
  if (redisUrl === null) return [pass('in the embedded database')]
  try {
    const info = await withRedis(redisUrl, (redis) => redis.info())
    const field = (name: string): string => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? ''
    return [
      pass(`Redis ${field('redis_version')} at ${stripCredentials(redisUrl)}`),
      toPolicyFinding(field('maxmemory_policy')),
    ]
  } catch (error) {
    if (isMasonError(error, 'queue_unavailable')) return [fail(error.message, error.remedy ?? '')]
    throw error
  }
}

/** Whether the queue prefix belongs to the database of the settings. Reads only; `checkQueue` reports an unreachable Redis. */
export const checkQueueOwner: DoctorCheck = async (config) => {
  const { redisUrl, queuePrefix: prefix } = config
  if (redisUrl === null) return []
  const owner = await withRedis(redisUrl, (redis) => readQueueOwner(redis, prefix)).catch(() => undefined)
  if (owner === undefined) return []
  if (owner === null) return [pass(`prefix ${prefix}, which the first start claims for this database`)]
  const databaseId = await withUnmigratedDatabase(config, readDatabaseId)
  if (owner === databaseId) return [pass(`prefix ${prefix} belongs to this database, ${owner}`)]
  const { problem, remedy } = describeForeignQueue(prefix, owner, databaseId)
  return [fail(problem, remedy)]
}

const toPolicyFinding = (policy: string): DoctorFinding => {
  if (policy === 'noeviction') return pass('keeps jobs when memory is full (noeviction)')
  if (policy === '') return pass('does not report its eviction policy; it must be noeviction')
  return fail(
    `evicts jobs when memory is full (maxmemory-policy ${policy})`,
    'run redis-cli config set maxmemory-policy noeviction, and set the same in redis.conf',
  )
}
