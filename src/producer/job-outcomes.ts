import { EventEmitter, once } from 'node:events'
import { Queue, QueueEvents } from 'bullmq'
import { LRUCache } from 'lru-cache'
import { parseJsonOrText } from '../infra/lib/json-text.ts'
import { settlesWithin } from '../infra/lib/timeouts.ts'
import type { JobOutcome } from '../infra/queue/job-outcome.ts'
import { intakeQueueName } from '../infra/queue/jobs.ts'
import { connectRedisReceiver, connectRedisSender, disconnectRedis } from '../infra/queue/redis.ts'
import { openDeadline } from '../state/deadline.ts'
import type { FieldError } from '../state/resource-schema.ts'

const maxOutcomes = 10_000
const answerMs = 1_000

/** `failedReason` is the errors as JSON; a job that BullMQ itself gave up has a text. */
const readRefusal = (reason: string): JobOutcome => {
  const errors = parseJsonOrText(reason)
  return { errors: errors === reason ? [{ pointer: '', detail: reason }] : (errors as FieldError[]) }
}

/**
 * Watches what becomes of the jobs on Redis. It begins with the events that Redis has, the last thousand or so, and goes on there
 * after a lost connection.
 */
export const watchJobOutcomes = ({ url, prefix }: { url: string; prefix: string }) => {
  const sender = connectRedisSender(url)
  const connections = [sender]
  const connection = connectRedisReceiver(url, connections)
  const events = new QueueEvents(intakeQueueName, { connection, prefix, lastEventId: '0' })
  const queue = new Queue(intakeQueueName, { connection: sender, prefix })
  const known = new LRUCache<string, JobOutcome>({ max: maxOutcomes })
  const notices = new EventEmitter().setMaxListeners(0)
  const settle = (id: string, outcome: JobOutcome): void => {
    known.set(id, outcome)
    notices.emit(`job ${id}`)
  }
  // lost connections are tried again
  events.on('error', () => {})
  queue.on('error', () => {})
  events.on('completed', ({ jobId, returnvalue }) => settle(jobId, returnvalue as unknown as JobOutcome))
  events.on('failed', ({ jobId, failedReason }) => settle(jobId, readRefusal(failedReason)))
  return {
    /** A job that is sent again under an id may have another outcome. The function that it returns takes that back. */
    forget(id: string): () => void {
      const outcome = known.get(id)
      known.delete(id)
      return () => {
        if (outcome && !known.has(id)) known.set(id, outcome)
      }
    },
    /** The outcome where it is known or comes within `ms`, else null; also null where the signal aborts. */
    async find(id: string, ms: number, signal?: AbortSignal): Promise<JobOutcome | null> {
      if (!known.has(id)) {
        using late = openDeadline(ms, signal ?? new AbortController().signal)
        await once(notices, `job ${id}`, { signal: late.signal }).catch(() => {})
      }
      return known.get(id) ?? null
    },
    /** Asks Redis, for a second at most: the outcome of a refused job, `gone` where there is no such job any more, null while it waits. */
    async readJob(id: string): Promise<JobOutcome | 'gone' | null> {
      const reading = queue.getJob(id)
      if (!(await settlesWithin(reading, answerMs))) throw new Error(`no answer within ${answerMs} ms`)
      const job = await reading
      if (!job) return 'gone'
      return job.finishedOn !== undefined && job.failedReason ? readRefusal(job.failedReason) : null
    },
    async close(): Promise<void> {
      connections.forEach(disconnectRedis)
      await Promise.allSettled([events.close(), queue.close()])
    },
  }
}
