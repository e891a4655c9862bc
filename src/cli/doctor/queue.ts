import { shownAddress } from '../banner.ts'
import type { Check, Finding } from '../doctor.ts'

const connectMs = 3_000

/** Whether Redis answers, and keeps what it is given. */
export const checkQueue: Check = async ({ redisUrl }) => {
  if (redisUrl === null) return [{ ok: true, text: 'in the embedded database' }]
  const { Redis } = await import('ioredis')
  const redis = new Redis(redisUrl, {
    lazyConnect: true,
    connectTimeout: connectMs,
    commandTimeout: connectMs,
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
      { ok: true, text: `Redis ${field('redis_version')} at ${shownAddress(redisUrl)}` },
      policyFinding(field('maxmemory_policy')),
    ]
  } catch (error) {
    return [unreachable(redisUrl, last ?? (error as Error))]
  } finally {
    redis.disconnect()
  }
}

const policyFinding = (policy: string): Finding => {
  if (policy === 'noeviction') return { ok: true, text: 'keeps jobs when memory is short (noeviction)' }
  if (policy === '') return { ok: true, text: 'does not tell its eviction policy; it has to be noeviction' }
  return {
    ok: false,
    text: `drops jobs when memory is short (maxmemory-policy ${policy})`,
    remedy: 'redis-cli config set maxmemory-policy noeviction, and the same in redis.conf',
  }
}

const unreachable = (url: string, error: Error): Finding => {
  const { code } = error as NodeJS.ErrnoException
  const refused = /WRONGPASS|NOAUTH/.test(error.message)
  return {
    ok: false,
    text: `Redis at ${shownAddress(url)} cannot be used: ${error.message || code}`,
    remedy: refused
      ? 'correct user or password in REDIS_URL'
      : 'start Redis there, or correct REDIS_URL; runs are still accepted meanwhile, but start late',
  }
}
