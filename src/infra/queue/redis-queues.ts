import { Queue } from 'bullmq'
import type { Log } from '../../state/ports/log.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import { createErrorReporter, type QueueConsumer, startConsumer } from './consumer.ts'
import {
  checkJobId,
  createWakeUpHandler,
  intakeJobName,
  intakeQueueName,
  type SendOptions,
  toBullOptions,
  toCoalescingId,
  toWakeUpData,
  type WakeUp,
  type WakeUpHandler,
  wakeUpJobName,
  wakeUpQueueName,
} from './jobs.ts'
import { createUnavailableError, describeQueueError, type QueueDriver } from './queue-driver.ts'
import { openRedisQueue } from './redis.ts'

/** Which Redis it is. `databaseId`: the database that the prefix must belong to; absent for a mere producer. */
type RedisQueueOptions = { url: string; prefix: string; databaseId?: string; log: Log }

const sendTimeoutMs = 1_000
const connectTimeoutMs = 1_500
const batchSize = 500
const wakeUpOptions = toBullOptions({})

function openSender(engine: QueueDriver, name: string) {
  const defaultJobOptions = { removeOnComplete: true, removeOnFail: true }
  const streams = { events: { maxLen: 1_000 } }
  const queue = new Queue(name, { connection: {}, defaultJobOptions, streams }, engine.backend)
  // Failed calls reject, and the driver logs lost connections.
  queue.on('error', () => {})
  return queue
}

/** Both queues on Redis, by BullMQ. It is loaded only where there is a Redis. */
export async function openRedisQueues(options: RedisQueueOptions) {
  const { log } = options
  const engine = await openRedisQueue(options, connectTimeoutMs)
  const report = createErrorReporter(log)
  const consumers = new Set<QueueConsumer>()
  let closing: Promise<void> | undefined
  let closed = false

  const wakeUps = openSender(engine, wakeUpQueueName)
  const intake = openSender(engine, intakeQueueName)

  const send = async (work: () => Promise<unknown>): Promise<void> => {
    const problem = closed ? 'it is closed' : engine.problem()
    if (problem !== null) throw createUnavailableError(problem)
    try {
      const sent = work()
      if (!(await settlesWithin(sent, sendTimeoutMs))) throw new Error(`no answer within ${sendTimeoutMs} ms`)
      await sent
    } catch (error) {
      throw createUnavailableError(error)
    }
  }

  const close = async (timeoutMs?: number) => {
    await Promise.all([...consumers].map((consumer) => consumer.close(timeoutMs)))
    // Last, because handlers that hand runs back may still wake other workers.
    closed = true
    await Promise.allSettled([wakeUps.close(), intake.close()])
    await engine.close()
  }

  return {
    wake: (wakeUp: WakeUp) => send(() => wakeUps.add(wakeUpJobName, toWakeUpData(wakeUp), wakeUpOptions)),

    wakeMany: async (many: readonly WakeUp[], { coalesce = false } = {}) => {
      for (let start = 0; start < many.length; start += batchSize) {
        const batch = many.slice(start, start + batchSize).map((wakeUp) => ({
          name: wakeUpJobName,
          data: toWakeUpData(wakeUp),
          opts: { ...wakeUpOptions, ...(coalesce && { jobId: toCoalescingId(wakeUp.run_id) }) },
        }))
        await send(() => wakeUps.addBulk(batch))
      }
    },

    onWakeUp: async (handler: WakeUpHandler, { concurrency }: { concurrency: number }) => {
      if (closing) throw createUnavailableError('it is closing')
      const handle = createWakeUpHandler(handler, log)
      const consumer = startConsumer(engine, wakeUpQueueName, concurrency, handle, report)
      consumers.add(consumer)
      return consumer
    },

    submit: async (id: string, data: unknown, sendOptions: SendOptions = {}) => {
      checkJobId(id)
      await send(() => intake.add(intakeJobName, data, { ...toBullOptions(sendOptions), jobId: id }))
    },

    driver: engine,

    ping: async () => {
      const startedAt = performance.now()
      try {
        await send(() => engine.roundTrip())
        return { ok: true as const, ms: performance.now() - startedAt }
      } catch (error) {
        return { ok: false as const, error: describeQueueError(error) }
      }
    },

    close: (timeoutMs?: number) => {
      closing ??= close(timeoutMs)
      return closing
    },
  }
}
