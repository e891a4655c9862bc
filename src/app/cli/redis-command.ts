import { Redis } from 'ioredis'
import { stripCredentials } from '../../infra/lib/strip-credentials.ts'
import { MasonError } from '../../state/errors.ts'

const timeoutMs = 3_000

/** A connection for one piece of work of a command, which does not wait for a server that is down: `queue_unavailable`. */
export const withRedis = async <Result>(
  url: string,
  work: (redis: Redis) => Promise<Result>,
): Promise<Result> => {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  })
  let last: Error | undefined
  redis.on('error', (error) => {
    last = error
  })
  try {
    await redis.connect()
    return await work(redis)
  } catch (error) {
    const cause = last ?? (error as Error)
    const { message, code } = cause as NodeJS.ErrnoException
    throw new MasonError(
      'queue_unavailable',
      `Redis at ${stripCredentials(url)} cannot be used: ${message || code}`,
      {
        remedy: /WRONGPASS|NOAUTH/.test(message)
          ? 'correct the user or the password in REDIS_URL'
          : 'start Redis there, or correct REDIS_URL; until then runs are accepted but start late',
        cause,
      },
    )
  } finally {
    redis.disconnect()
  }
}
