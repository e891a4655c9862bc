import { Queue } from 'bullmq'
import { MasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports.ts'
import { startConsumer } from './consumer.ts'
import { orLate } from './deadline.ts'
import { describeError, type Engine } from './engine.ts'
import {
  answerBells,
  bullOptions,
  checkJobId,
  coalescingId,
  type HandleJob,
  plainBell,
  takeIntake,
} from './jobs.ts'
import type { PgliteSession } from './pglite-pool.ts'
import { createErrorReporter } from './report.ts'

export const bellQueueName = 'mason-bells'
/** Public: any BullMQ client may add jobs named `run` here. CONTRACT section 3. */
export const intakeQueueName = 'mason-runs'
const intakeJobName = 'run'
const bellJobName = 'bell'

/** Says only "there may be work": ids, never data. Lost, doubled and late bells are harmless. */
export type Bell = { run_id: string; business_id: string }

export type SendOptions = {
  /** Milliseconds before it may be handled. */
  delayMs?: number
  /** 0 to 100, higher first, 0 when absent. */
  priority?: number
}

export type IntakeJob = {
  /** The caller's idempotency key. */
  id: string
  name: string
  /** As it came: nothing is checked yet. */
  data: unknown
  /** How often the handler has rejected this job before. */
  attemptsMade: number
  /** How often a worker was lost while it handled this job. */
  stalls: number
  /** 1 to 100, higher first; absent when the sender gave none or the lowest. */
  priority?: number
}

export type Consumer = {
  /** No handler starts after this; those that run go on. There is no way back but a new consumer. */
  pause(): Promise<void>
  /**
   * Waits up to `timeoutMs` for running handlers, then aborts their signals, gives them half a second more
   * and leaves. Jobs left so come again: at once on the embedded queue's next start, after about a minute on Redis.
   */
  close(timeoutMs?: number): Promise<void>
}

export type BellHandler = (bell: Bell, signal: AbortSignal) => Promise<void>
export type IntakeHandler = (job: IntakeJob, signal: AbortSignal) => Promise<void>

/** Every method that sends rejects with `queue_unavailable` within a second when the queue is down. */
export type Queues = {
  /** Not to be awaited inside an open transaction of the embedded database: it needs the same session, and fails after a second. */
  ring(bell: Bell, options?: SendOptions): Promise<void>
  /** Rings in bundles. `coalesce` drops bells for a run that has such a bell waiting or in work: for the reconciler. */
  ringMany(bells: readonly (Bell & SendOptions)[], options?: { coalesce?: boolean }): Promise<void>
  /** Calls `handler` for each bell, at most `concurrency` at once. A rejection is logged and the bell is gone. */
  onBell(handler: BellHandler, options: { concurrency: number }): Promise<Consumer>
  /** Adds to the intake queue. An id that waits there already is not added again. Bad ids: `invalid_request`. */
  submit(id: string, data: unknown, options?: SendOptions): Promise<void>
  /** Calls `handler` for each job until it resolves: a rejection is retried after 0.5 s, doubling up to 30 s, for ever. */
  onIntake(handler: IntakeHandler, options: { concurrency: number }): Promise<Consumer>
  /** A round trip's milliseconds, or what is wrong; answers within a second. */
  ping(): Promise<{ ok: true; ms: number } | { ok: false; error: string }>
  /** Closes consumers as `Consumer.close` does, then the connections. Safe to call twice. */
  close(timeoutMs?: number): Promise<void>
}

export type QueuesOptions = { log: Log } & (
  | {
      kind: 'redis'
      url: string
      /** Default `bull`, which is what plain BullMQ clients use. */
      prefix?: string
    }
  | { kind: 'embedded'; pglite: PgliteSession }
)

const sendMs = 1_000
const patienceMs = 1_500
const bundleSize = 500

const openEngine = async (options: QueuesOptions): Promise<Engine> => {
  switch (options.kind) {
    case 'redis':
      return (await import('./redis.ts')).openRedis(options, patienceMs)
    case 'embedded':
      return (await import('./embedded.ts')).openEmbedded(options.pglite)
    default:
      throw options satisfies never
  }
}

const bellJob = (bell: Bell, options: SendOptions) => ({
  name: bellJobName,
  data: plainBell(bell),
  opts: bullOptions(options),
})

const unavailable = (cause: unknown) =>
  new MasonError('queue_unavailable', `the queue is unavailable: ${describeError(cause)}`, {
    cause,
    remedy: 'runs are accepted without the queue; `mason doctor` says what is wrong with it',
  })

function openSender(engine: Engine, name: string) {
  const defaultJobOptions = { removeOnComplete: true, removeOnFail: true }
  const streams = { events: { maxLen: 1_000 } }
  const queue = new Queue(name, { connection: {}, defaultJobOptions, streams }, engine.backend)
  // Failed calls reject, and the engine tells of the connection: nothing is left to say here.
  queue.on('error', () => {})
  return queue
}

/** Opens both queues. With Redis down it resolves within 2 s all the same and goes on trying. */
export async function openQueues(options: QueuesOptions): Promise<Queues> {
  const { log } = options
  const engine = await openEngine(options)
  const report = createErrorReporter(log)
  const consumers = new Set<Consumer>()
  let closing: Promise<void> | undefined
  let closed = false

  const bells = openSender(engine, bellQueueName)
  const intake = openSender(engine, intakeQueueName)

  const send = async (work: () => Promise<unknown>): Promise<void> => {
    const fault = closed ? 'it is closed' : engine.fault()
    if (fault !== null) throw unavailable(fault)
    try {
      await orLate(work(), sendMs, () => new Error(`no answer within ${sendMs} ms`))
    } catch (error) {
      throw unavailable(error)
    }
  }

  const consume = (queueName: string, concurrency: number, handle: HandleJob) => {
    if (closing) throw unavailable('it is closing')
    const consumer = startConsumer(engine, queueName, concurrency, handle, report)
    consumers.add(consumer)
    return consumer
  }

  const close = async (timeoutMs?: number) => {
    await Promise.all([...consumers].map((consumer) => consumer.close(timeoutMs)))
    // Only now: handlers that hand their work back may still ring.
    closed = true
    await Promise.allSettled([bells.close(), intake.close()])
    await engine.close()
  }

  return {
    ring: (bell, sendOptions = {}) =>
      send(() => bells.add(bellJobName, plainBell(bell), bullOptions(sendOptions))),

    ringMany: async (many, { coalesce = false } = {}) => {
      for (let start = 0; start < many.length; start += bundleSize) {
        const bundle = many.slice(start, start + bundleSize).map((bell) => {
          const job = bellJob(bell, bell)
          return coalesce ? { ...job, opts: { ...job.opts, jobId: coalescingId(bell.run_id) } } : job
        })
        await send(() => bells.addBulk(bundle))
      }
    },

    onBell: async (handler, { concurrency }) =>
      consume(bellQueueName, concurrency, answerBells(handler, log)),

    submit: async (id, data, sendOptions = {}) => {
      checkJobId(id)
      const encoded = engine.encode(data)
      await send(() => intake.add(intakeJobName, encoded, { ...bullOptions(sendOptions), jobId: id }))
    },

    onIntake: async (handler, { concurrency }) =>
      consume(intakeQueueName, concurrency, takeIntake(handler, engine, log)),

    ping: async () => {
      const startedAt = performance.now()
      try {
        await send(() => engine.roundTrip())
        return { ok: true, ms: performance.now() - startedAt }
      } catch (error) {
        return { ok: false, error: describeError(error) }
      }
    },

    close: (timeoutMs) => {
      closing ??= close(timeoutMs)
      return closing
    },
  }
}
