import type { Redis } from 'ioredis'
import { type MasonError, toSettingsError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'

/** A queue prefix and the database whose processes use it. */
export type QueueOwner = { prefix: string; databaseId: string }

/** BullMQ's keys under the same prefix continue with the name of a queue. */
const toOwnerKey = (prefix: string): string => `${prefix}:mason-database`

/** The id of the database that a queue prefix belongs to; null where it is free. */
export const readQueueOwner = (redis: Redis, prefix: string): Promise<string | null> =>
  redis.get(toOwnerKey(prefix))

/** Takes a prefix over from any database. Returns the id that it belonged to, null where it was free. */
export const takeOverQueue = (redis: Redis, { prefix, databaseId }: QueueOwner): Promise<string | null> =>
  redis.getset(toOwnerKey(prefix), databaseId)

/** Claims a free prefix. Returns the id that it belongs to after that. */
const claimFreeQueue = async (redis: Redis, { prefix, databaseId }: QueueOwner): Promise<string> => {
  await redis.setnx(toOwnerKey(prefix), databaseId)
  return (await readQueueOwner(redis, prefix)) ?? databaseId
}

/** What is wrong where a prefix belongs to the database `other`; `databaseId` null: ours has no id yet. */
export const describeForeignQueue = (prefix: string, other: string, databaseId: string | null) => ({
  problem: `the queue prefix ${prefix} belongs to another database: ${other} in Redis, ${databaseId ?? 'a new one'} at DATABASE_URL`,
  remedy:
    'correct DATABASE_URL or REDIS_URL, or set MASON_QUEUE_PREFIX to a prefix that no other Mason uses; where this database replaces the other one, run `mason queue claim`',
})

/** Jobs of another database are never taken for longer than this after a take-over. */
const recheckMs = 1_000

/** Watches whose prefix it is. A process that has lost it takes no more jobs until it is started again. */
export function watchQueueOwner(
  redis: Redis,
  { prefix, databaseId, log }: { prefix: string; databaseId?: string; log: Log },
) {
  let refusal: MasonError | null = null
  let checkedAt = Number.NEGATIVE_INFINITY

  const check = async (): Promise<MasonError | null> => {
    if (databaseId === undefined || refusal !== null) return refusal
    const owner = await claimFreeQueue(redis, { prefix, databaseId })
    checkedAt = performance.now()
    if (owner === databaseId) return null
    const { problem, remedy } = describeForeignQueue(prefix, owner, databaseId)
    refusal = toSettingsError(problem, remedy)
    return refusal
  }

  return {
    /** Claims a free prefix, else compares. Resolves with the error of a process with another database. */
    check,
    /** As `check`, at most once a second unless `now`; it logs the error. */
    async isOurs(now = false): Promise<boolean> {
      if (refusal !== null) return false
      if (!now && performance.now() - checkedAt < recheckMs) return true
      const error = await check()
      if (error) log.error({ error: error.message, remedy: error.remedy }, 'queue: no more jobs are taken')
      return error === null
    },
    problem: (): string | null => refusal?.message ?? null,
  }
}
