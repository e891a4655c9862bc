import { setTimeout as pause } from 'node:timers/promises'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import type { Database } from '../../src/infra/database/database.ts'
import { toWakeUpsKey } from '../../src/infra/queue/wake-ups.ts'
import { checkJobs, type SentJob } from '../fuzz/settled-jobs.ts'
import type { JobInput } from './input.ts'

const patienceMs = 60_000

/** Puts jobs into both queues as any client of Redis can, and says by the database which did not become what they must. */
export const deliverJobs = async (
  {
    redisUrl,
    database,
    seed,
    signal,
  }: { redisUrl: string; database: Database; seed: number; signal: AbortSignal },
  inputs: readonly JobInput[],
): Promise<string[]> => {
  if (inputs.length === 0) return []
  const redis = new Redis(redisUrl)
  const queue = new Queue('mason-runs', { connection: { url: redisUrl } })
  try {
    const sent: SentJob[] = []
    for (const [at, { job }] of inputs.entries()) {
      signal.throwIfAborted()
      const id = `attack-${seed}${job.idTail}`
      sent.push({ job, id, at })
      if (job.queue === 'wake-ups') {
        await redis.zadd(toWakeUpsKey('bull'), 0, job.data)
        continue
      }
      const held = await queue.add(job.name, {}, { ...job.options, jobId: id, delay: 3_600_000 })
      await redis.hset(queue.toKey(id), 'data', job.data)
      await held.promote()
    }
    const until = performance.now() + patienceMs
    for (;;) {
      const { failures } = await checkJobs(database, sent)
      if (failures.length === 0 || performance.now() > until) return failures
      await pause(300, undefined, { signal })
    }
  } finally {
    await queue.close()
    await redis.quit()
  }
}
