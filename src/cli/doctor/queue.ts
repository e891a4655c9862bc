import { stripCredentials } from '../banner.ts'
import { type DoctorCheck, type DoctorFinding, fail, pass } from './check.ts'

const connectTimeoutMs = 3_000

/** Whether Redis responds and never evicts jobs. */
export const checkQueue: DoctorCheck = async ({ redisUrl }) => {
  if (redisUrl === null) return [pass('in the embedded database')]
  const { Redis } = await import('ioredis')
  const redis = new Redis(redisUrl, {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    commandTimeout: connectTimeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  })
  let last: Error | undefined
  redis.on('error', (error) => {
    last = error
  })
  try {
    await redis.connect()
    const info = await redis.info()
    const field = (name: string): string => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? ''
    return [
      pass(`Redis ${field('redis_version')} at ${stripCredentials(redisUrl)}`),
      toPolicyFinding(field('maxmemory_policy')),
    ]
  } catch (error) {
    return [toUnreachableFinding(redisUrl, last ?? (error as Error))]
  } finally {
    redis.disconnect()
  }
}

const toPolicyFinding = (policy: string): DoctorFinding => {
  if (policy === 'noeviction') return pass('keeps jobs when memory is full (noeviction)')
  if (policy === '') return pass('does not report its eviction policy; it must be noeviction')
  return fail(
    `evicts jobs when memory is full (maxmemory-policy ${policy})`,
    'run redis-cli config set maxmemory-policy noeviction, and set the same in redis.conf',
  )
}

const toUnreachableFinding = (url: string, error: Error): DoctorFinding => {
  const { code } = error as NodeJS.ErrnoException
  const refused = /WRONGPASS|NOAUTH/.test(error.message)
  return fail(
    `Redis at ${stripCredentials(url)} cannot be used: ${error.message || code}`,
    refused
      ? 'correct the user or the password in REDIS_URL'
      : 'start Redis there, or correct REDIS_URL; until then runs are accepted but start late',
  )
}
