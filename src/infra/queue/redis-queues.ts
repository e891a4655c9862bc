import { Queue } from 'bullmq'
import type { Log } from '../../state/ports/log.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import type { QueueConsumer } from './consumer.ts'
import {
  checkJobId,
  intakeJobName,
  intakeQueueName,
  type SendOptions,
  toBullOptions,
  type WakeUp,
  type WakeUpHandler,
} from './jobs.ts'
import { createUnavailableError, describeQueueError } from './queue-driver.ts'
import { openRedisQueue } from './redis.ts'
import { addWakeUps, consumeWakeUps } from './wake-ups.ts'

/** Which Redis it is. `databaseId`: the database that the prefix must belong to; absent for a mere producer. */
type RedisQueueOptions = { url: string; prefix: string; databaseId?: string; log: Log }

const sendTimeoutMs = 1_000
const connectTimeoutMs = 1_500
const intakeOptions = {
  connection: {},
  defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  streams: { events: { maxLen: 1_000 } },
}

/** Both queues on Redis: wake-ups in a sorted set, the public one by BullMQ. It is loaded only where there is a Redis. */
export async function openRedisQueues(options: RedisQueueOptions) {
  const { log } = options
  const engine = await openRedisQueue(options, connectTimeoutMs)
  const consumers = new Set<QueueConsumer>()
  let closing: Promise<void> | undefined
  let closed = false

  const intake = new Queue(intakeQueueName, intakeOptions, engine.backend)
  // failed calls reject, and the driver logs lost connections
  intake.on('error', () => {})

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
    await intake.close().catch(() => {})
    await engine.close()
  }

  return {
    wake: (wakeUp: WakeUp) => send(() => addWakeUps(engine, [wakeUp])),

    wakeMany: (wakeUps: readonly WakeUp[]) => send(() => addWakeUps(engine, wakeUps)),

    onWakeUp: async (handle: WakeUpHandler, { concurrency }: { concurrency: number }) => {
      if (closing) throw createUnavailableError('it is closing')
      const consumer = consumeWakeUps(engine, handle, concurrency, log)
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
