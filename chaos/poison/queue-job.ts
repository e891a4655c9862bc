import { setTimeout as pause } from 'node:timers/promises'
import { Queue } from 'bullmq'
import type { Backend } from '../../test/support/backend.ts'
import { deadlyBusiness } from './worker.ts'

const mostMs = 240_000
/** One with other jobs, then alone. */
const mostTries = 3
const lookMs = 250

/**
 * Pushes a job that kills the process that admits it, and waits until it is parked in `rejected_jobs`; says what went wrong
 * otherwise.
 */
export const parkDeadlyJob = async (
  backend: Backend,
  deaths: () => number,
  signal: AbortSignal,
): Promise<{ deaths: number; fault: string | null }> => {
  const connection = { url: backend.config.redisUrl ?? '' }
  const queue = new Queue('mason-runs', { connection, prefix: backend.config.queuePrefix })
  const database = await backend.openDatabase()
  const before = deaths()
  try {
    const id = 'deadly-job'
    await queue.add('run', { prompt: 'x', user_id: 'u1', business_id: deadlyBusiness }, { jobId: id })
    const until = performance.now() + mostMs
    while (performance.now() < until && deaths() - before <= mostTries) {
      const { rows } = await database.query('SELECT FROM rejected_jobs WHERE job_id = $1', [id])
      if (rows.length > 0) return { deaths: deaths() - before, fault: null }
      await pause(lookMs, undefined, { signal })
    }
    const tries = deaths() - before
    return { deaths: tries, fault: `a deadly queue job is not parked after ${tries} deaths of workers` }
  } finally {
    await queue.close()
    await database.close()
  }
}
