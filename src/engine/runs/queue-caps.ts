import { queryOne } from '../../infra/database/database.ts'
import { MasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Sql } from '../../state/ports/sql.ts'

/** Queued runs that one session may have; admission itself counts them. */
export const maxSessionQueue = 100
const recountEveryMs = 1000

type QueueCount = { queued: number; max: number }
type CachedCount = { at: number; count: Promise<QueueCount> }

/**
 * Limits the queued runs of a business. Each process reads the count once a second and adds its own admissions, so that
 * a flood is stopped without counting rows at every request.
 */
export const createQueueCaps = (sql: Sql, clock: Clock, defaultMax: number) => {
  const counts = new Map<string, CachedCount>()

  const recount = (businessId: string): CachedCount => {
    const started = { at: clock.monotonicMs(), count: countQueued(sql, businessId, defaultMax) }
    counts.set(businessId, started)
    started.count.catch(() => counts.delete(businessId))
    return started
  }

  return {
    /** Counts one more run; throws `too_many_requests` when the business has too many queued ones. */
    async check(businessId: string): Promise<void> {
      const cached = counts.get(businessId)
      const fresh = cached && clock.monotonicMs() - cached.at < recountEveryMs
      const count = await (fresh ? cached : recount(businessId)).count
      if (count.queued >= count.max)
        throw createTooManyError(
          `${count.max} runs of this business are already queued`,
          '; an operator raises quotas.queued_runs of the business, or MASON_QUOTA_QUEUED_RUNS',
        )
      count.queued++
    },
  }
}

/** See `createQueueCaps`. */
export type QueueCaps = ReturnType<typeof createQueueCaps>

/** The session has as many queued runs as it may have. */
export const createSessionFullError = (sessionId: string): MasonError =>
  createTooManyError(`session "${sessionId}" already has ${maxSessionQueue} queued runs`)

const createTooManyError = (what: string, orElse = ''): MasonError =>
  new MasonError('too_many_requests', what, {
    remedy: `wait until some runs have started, then submit again${orElse}`,
    detail: { retry_after_s: 5 },
  })

/** 10,000 is what the column `max_queued` holds where no operator ever set it. */
const countQueued = async (sql: Sql, businessId: string, defaultMax: number): Promise<QueueCount> => {
  const row = await queryOne<QueueCount>(
    sql,
    `SELECT b.max, (SELECT count(*) FROM (
       SELECT FROM runs r WHERE r.tenant = $1 AND r.status = 'queued' LIMIT b.max) q)::int AS queued
     FROM (SELECT COALESCE(quota_queued_runs, NULLIF(max_queued, 10000), $2::int) AS max FROM businesses WHERE tenant = $1) b`,
    [businessId, defaultMax],
  )
  return row ?? { queued: 0, max: Number.POSITIVE_INFINITY }
}
