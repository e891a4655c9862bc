import { MasonError } from '../../state/errors.ts'
import type { Clock, Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'

/** Turns that may wait in one session; admission itself counts them. */
export const maxSessionQueue = 100
const lookEveryMs = 1000

type Count = { queued: number; max: number }
type Look = { at: number; count: Promise<Count> }

/**
 * How long the queue of a business may get. The count is looked up once a second in each process and carried on
 * by what this process lets through, so that a flood is stopped without counting rows at every request.
 */
export const createQueueCaps = (sql: Sql, clock: Clock) => {
  const looks = new Map<string, Look>()

  const look = (tenant: string): Look => {
    const begun = { at: clock.monotonicMs(), count: countQueued(sql, tenant) }
    looks.set(tenant, begun)
    begun.count.catch(() => looks.delete(tenant))
    return begun
  }

  return {
    /** Takes a place; throws `too_many_requests` when the business has too many runs waiting. */
    async check(tenant: string): Promise<void> {
      const known = looks.get(tenant)
      const fresh = known && clock.monotonicMs() - known.at < lookEveryMs
      const count = await (fresh ? known : look(tenant)).count
      if (count.queued >= count.max) throw tooMany(`${count.max} runs of this business are waiting already`)
      count.queued++
    },
  }
}

export type QueueCaps = ReturnType<typeof createQueueCaps>

export const tooManyOfSession = (sessionId: string): MasonError =>
  tooMany(`session "${sessionId}" has ${maxSessionQueue} runs waiting`)

const tooMany = (what: string): MasonError =>
  new MasonError('too_many_requests', what, {
    remedy: 'wait until some have run, then submit again',
    detail: { retry_after_s: 5 },
  })

const countQueued = async (sql: Sql, tenant: string): Promise<Count> => {
  const row = await one<Count>(
    sql,
    `SELECT b.max_queued AS max, (SELECT count(*) FROM (
       SELECT FROM runs r WHERE r.tenant = b.tenant AND r.status = 'queued' LIMIT b.max_queued) q)::int AS queued
     FROM businesses b WHERE b.tenant = $1`,
    [tenant],
  )
  return row ?? { queued: 0, max: Number.POSITIVE_INFINITY }
}
