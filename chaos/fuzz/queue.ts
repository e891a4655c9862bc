import { setTimeout as pause } from 'node:timers/promises'
import { Queue } from 'bullmq'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { toWakeUpsKey } from '../../src/infra/queue/wake-ups.ts'
import type { FuzzFindings, FuzzOptions } from './http.ts'
import { type FuzzJob, jobs } from './jobs.ts'
import { checkJobs, type SentJob } from './settled-jobs.ts'

const batch = 1000
const lanes = 8
/** Of so many jobs one is a valid one that is due at once, and of the valid ones one in so many is sent twice. */
const neighbourEvery = 100
const twiceEvery = 5

/** Pushes `count` malformed jobs into the public queue with raw BullMQ, and malformed wake-ups into their set, and settles from the database what became of each job. */
export const fuzzQueue = async ({ mason, seed, count, say, signal }: FuzzOptions): Promise<FuzzFindings> => {
  const redis = new Redis(mason.redisUrl)
  const options = { connection: { url: mason.redisUrl }, prefix: mason.queuePrefix }
  const queue = new Queue('mason-runs', options)
  const wakeUps = toWakeUpsKey(mason.queuePrefix)
  const sent: SentJob[] = []

  /** As any client in any language could: the bytes of the data are put in place before anybody may take the job. */
  const push = async ({ queue: name, name: jobName, data, options }: FuzzJob, id: string): Promise<void> => {
    if (name === 'wake-ups') return void (await redis.zadd(wakeUps, 0, data))
    const job = await queue.add(jobName, {}, { ...options, jobId: id, delay: 3_600_000 })
    await redis.hset(queue.toKey(id), 'data', data)
    await job.promote()
  }
  const one = async (job: FuzzJob, at: number): Promise<void> => {
    const id = `${job.queue}-${seed}-${at}${job.idTail}`
    sent.push({ job, id, at })
    await push(job, id)
    if (job.fate === 'admitted' && at % twiceEvery === 0) await push(job, id).catch(sameIdWaits)
    if (at % neighbourEvery !== 0) return
    const neighbour = { ...job, ...dueAtOnce, what: 'a neighbour' }
    const neighbourId = `neighbour-${seed}-${at}`
    sent.push({ job: neighbour, id: neighbourId, at })
    await push(neighbour, neighbourId)
  }
  /** Refused jobs stay in the queue as failed ones. */
  const left = async (): Promise<number> => {
    const { failed, ...open } = await queue.getJobCounts()
    return Object.values(open).reduce((a, b) => a + b, await redis.zcard(wakeUps))
  }

  try {
    for (let from = 0; from < count; from += batch) {
      const numRuns = Math.min(batch, count - from)
      const next = fc.sample(jobs, { seed: seed + from, numRuns }).map((job, n) => [job, from + n] as const)
      await Promise.all(
        Array.from({ length: lanes }, async () => {
          for (let job = next.shift(); job; job = next.shift()) await one(...job)
        }),
      )
      signal.throwIfAborted()
      say(`${from + numRuns} jobs`)
    }
    const stuck = await drained(left, signal)
    const { figures, failures } = await checkJobs(mason.database, sent)
    if (stuck > 0) failures.unshift(`${stuck} jobs are still in the queues`)
    return { figures: { jobs: count, ...figures }, failures }
  } finally {
    await queue.close().catch(() => {})
    await redis.quit()
  }
}

const dueAtOnce = {
  queue: 'mason-runs',
  name: 'run',
  data: Buffer.from(JSON.stringify({ prompt: 'What is 2 + 2?', user_id: 'u1', business_id: 'neighbours' })),
  options: {},
  fate: 'admitted',
} as const

/** The job of this id was taken, or promoted, between our two steps: then the second one is gone, as it should be. */
const sameIdWaits = (): void => {}

/** How many jobs are left when no more of them go, at most two minutes after the last one came. */
const drained = async (left: () => Promise<number>, signal: AbortSignal): Promise<number> => {
  const until = performance.now() + 120_000
  for (;;) {
    const count = await left()
    if (count === 0 || performance.now() > until) return count
    await pause(200, undefined, { signal })
  }
}
