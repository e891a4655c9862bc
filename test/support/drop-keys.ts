import { Redis } from 'ioredis'

/** Takes away what a queue of this prefix left in Redis. */
export const dropKeys = async (redisUrl: string, prefix: string): Promise<void> => {
  const redis = new Redis(redisUrl)
  for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 500 }))
    if (keys.length > 0) await redis.del(keys)
  await redis.quit()
}
