import { Queue } from 'bullmq'
import { MasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import type { RunKey } from '../database/database.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import { createErrorReporter, type QueueConsumer, startConsumer } from './consumer.ts'
import type { PgliteSession } from './embedded.ts'
import { type IntakeQueue, openIntakeQueue } from './intake-queue.ts'
import {
  checkJobId,
  createWakeUpHandler,
  type SendOptions,
  toBullOptions,
  toCoalescingId,
  toWakeUpData,
  type WakeUp,
  type WakeUpHandler,
} from './jobs.ts'
import { describeQueueError, type QueueDriver } from './queue-driver.ts'

/** The queue of wake-ups. Its name is older than the term and stays, for processes of both versions. */
export const wakeUpQueueName = 'mason-bells'
/** The public intake queue: any BullMQ client may add jobs named `run`. CONTRACT section 3. */
export const intakeQueueName = 'mason-runs'
const intakeJobName = 'run'
/** The name of its jobs, as old as its own. */
export const wakeUpJobName = 'bell'

/** Both queues. Every method that sends rejects with `queue_unavailable` within a second when the queue is down. */
export type Queues = {
  /** Do not await it inside a transaction of the embedded database: it needs the same session and fails after a second. */
  wake(wakeUp: WakeUp, options?: SendOptions): Promise<void>
  /** Sends wake-ups in batches. `coalesce` drops those of runs that already have a coalesced one waiting or in work. */
  wakeMany(wakeUps: readonly (WakeUp & SendOptions)[], options?: { coalesce?: boolean }): Promise<void>
  /** Calls `handler` for each wake-up, at most `concurrency` at once. A rejection is logged and the wake-up is dropped. */
  onWakeUp(handler: WakeUpHandler, options: { concurrency: number }): Promise<QueueConsumer>
  /** Adds a job to the intake queue, on Redis, unless its id already waits there. Throws `invalid_request` for an invalid id. */
  submit(id: string, data: unknown, options?: SendOptions): Promise<void>
  /** Opens the intake queue for its leader, which takes jobs while `mayTake` says so. Null: the embedded queue has none. */
  openIntake: ((mayTake: () => boolean) => IntakeQueue) | null
  /** The milliseconds of a round trip, or what is wrong; resolves within a second. */
  ping(): Promise<{ ok: true; ms: number } | { ok: false; error: string }>
  /** Closes consumers as `QueueConsumer.close` does, then the connections. Safe to call twice. */
  close(timeoutMs?: number): Promise<void>
}

/** Wakes a worker for a run that is queued in the database, and does not wait: the outbox sends a wake-up that is lost here. */
export const wakeRun = (queues: Pick<Queues, 'wake'>, { tenant, run_id }: RunKey): void =>
  void queues.wake({ run_id, business_id: tenant }).catch(() => {})

/** Options of `openQueues`. */
export type QueuesOptions = { log: Log } & (
  | {
      kind: 'redis'
      url: string
      /** Begins the keys. */
      prefix: string
      /** The database that the prefix must belong to, which a free one then does. Absent for a mere producer. */
      databaseId?: string
    }
  | { kind: 'embedded'; pglite: PgliteSession }
)

const sendTimeoutMs = 1_000
const connectTimeoutMs = 1_500
const batchSize = 500

const openDriver = async (options: QueuesOptions): Promise<QueueDriver> =>
  options.kind === 'redis'
    ? (await import('./redis.ts')).openRedisQueue(options, connectTimeoutMs)
    : (await import('./embedded.ts')).openEmbeddedQueue(options.pglite)

const createUnavailableError = (cause: unknown) =>
  new MasonError('queue_unavailable', `the queue is unavailable: ${describeQueueError(cause)}`, {
    cause,
    remedy: 'run `mason doctor` to find the cause; runs are accepted without the queue',
  })

function openSender(engine: QueueDriver, name: string) {
  const defaultJobOptions = { removeOnComplete: true, removeOnFail: true }
  const streams = { events: { maxLen: 1_000 } }
  const queue = new Queue(name, { connection: {}, defaultJobOptions, streams }, engine.backend)
  // Failed calls reject, and the driver logs lost connections.
  queue.on('error', () => {})
  return queue
}

/**
 * Opens both queues. With Redis down it still resolves within 2 s and keeps trying to connect. Rejects with
 * `invalid_settings` where the prefix belongs to another database.
 */
export async function openQueues(options: QueuesOptions): Promise<Queues> {
  const { log } = options
  const engine = await openDriver(options)
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
    wake: (wakeUp, sendOptions = {}) =>
      send(() => wakeUps.add(wakeUpJobName, toWakeUpData(wakeUp), toBullOptions(sendOptions))),

    wakeMany: async (many, { coalesce = false } = {}) => {
      for (let start = 0; start < many.length; start += batchSize) {
        const batch = many.slice(start, start + batchSize).map((wakeUp) => ({
          name: wakeUpJobName,
          data: toWakeUpData(wakeUp),
          opts: { ...toBullOptions(wakeUp), ...(coalesce && { jobId: toCoalescingId(wakeUp.run_id) }) },
        }))
        await send(() => wakeUps.addBulk(batch))
      }
    },

    onWakeUp: async (handler, { concurrency }) => {
      if (closing) throw createUnavailableError('it is closing')
      const handle = createWakeUpHandler(handler, log)
      const consumer = startConsumer(engine, wakeUpQueueName, concurrency, handle, report)
      consumers.add(consumer)
      return consumer
    },

    submit: async (id, data, sendOptions = {}) => {
      checkJobId(id)
      await send(() => intake.add(intakeJobName, data, { ...toBullOptions(sendOptions), jobId: id }))
    },

    openIntake:
      options.kind === 'redis'
        ? (mayTake) => openIntakeQueue(engine, intakeQueueName, mayTake, report)
        : null,

    ping: async () => {
      const startedAt = performance.now()
      try {
        await send(() => engine.roundTrip())
        return { ok: true, ms: performance.now() - startedAt }
      } catch (error) {
        return { ok: false, error: describeQueueError(error) }
      }
    },

    close: (timeoutMs) => {
      closing ??= close(timeoutMs)
      return closing
    },
  }
}
