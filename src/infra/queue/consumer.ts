import { setTimeout as sleep } from 'node:timers/promises'
import {
  type IQueueBackend,
  isNotConnectionError,
  type Job,
  type JobJson,
  WaitingError,
  Worker,
  type WorkerOptions,
} from 'bullmq'
import { LRUCache } from 'lru-cache'
import type { Log } from '../../state/ports/log.ts'
import { hasLongNumbers, parseExactJson } from '../../state/text/exact-json.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import { type JobHandler, overrideJobOptions } from './jobs.ts'
import { describeQueueError, type QueueDriver } from './queue-driver.ts'

/** A consumer of one queue. */
export type QueueConsumer = {
  /** Starts no more handlers; running ones go on. It cannot be undone. */
  pause(): Promise<void>
  /**
   * Waits up to `timeoutMs` for running handlers, then aborts their signals and waits half a second more. Unfinished jobs
   * come again after about a minute on Redis.
   */
  close(timeoutMs?: number): Promise<void>
}

/** Reports an error of BullMQ; `what` says where it occurred. */
export type ErrorReporter = (error: Error, what: string) => void

const silenceMs = 30_000

/** Refused, reset, timed out and the like: errors of the operating system name their call. */
const isConnectionError = (error: Error) => 'syscall' in error || !isNotConnectionError(error)

/** Logs errors of BullMQ, each at most twice a minute. Lost connections are not logged, because the driver logs them once. */
export function createErrorReporter(log: Log): ErrorReporter {
  const recent = new LRUCache<string, true>({ max: 100, ttl: silenceMs })
  return (error, what) => {
    if (isConnectionError(error)) return
    const key = `${what}: ${describeQueueError(error)}`
    if (recent.has(key)) return
    recent.set(key, true)
    log.error({ error }, what)
  }
}

const graceMs = 500
const closeTimeoutMs = 2_000

const workerSettings = {
  lockDuration: 60_000,
  stalledInterval: 15_000,
  // With the default of 1 the second crash during a job would fail it for ever.
  maxStalledCount: 1_000_000,
  removeOnComplete: { count: 0 },
  runRetryDelay: 1_000,
} satisfies Partial<WorkerOptions>

/** A worker that pauses after a failed claim and accepts data that is not JSON. */
export class PatientWorker extends Worker<unknown, unknown, string, IQueueBackend> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      if (!this.closing) await sleep(1_000)
      throw error
    }
  }

  protected override createJob(json: JobJson, id: string) {
    try {
      const job = super.createJob(json, id)
      if (hasLongNumbers(String(json.data))) job.data = parseExactJson(String(json.data))
      return job
    } catch {
      return super.createJob({ ...json, data: JSON.stringify(json.data) }, id)
    }
  }

  /** Ends the blocking wait for the next job, which would outlive a forced close by seconds. */
  async interrupt(): Promise<void> {
    await this.backend.disconnectBlocking(false)
  }

  /** Stops the timers and connections that a hanging close would leave behind. */
  async abandon(): Promise<void> {
    await this.lockManager.close()
    await this.backend.close(true)
  }
}

const isAnswering = async (engine: QueueDriver): Promise<boolean> => {
  if (engine.problem() !== null) return false
  const trip = engine.roundTrip().then(() => true)
  return (await settlesWithin(trip, graceMs)) && trip.catch(() => false)
}

/**
 * Calls `handle` for each job of a queue. Losing a job's lock (Redis restarted empty) aborts
 * nothing: the fence is the run's lease in the database, the queue only wakes workers.
 */
export function startConsumer(
  engine: QueueDriver,
  queueName: string,
  concurrency: number,
  handle: JobHandler,
  report: ErrorReporter,
): QueueConsumer {
  const running = new Map<AbortController, Promise<unknown>>()
  let stopping = false
  let closing: Promise<void> | undefined

  const handleJob = async (job: Job, token = ''): Promise<unknown> => {
    overrideJobOptions(job)
    if (!(await engine.isOurs())) void pause()
    if (stopping) {
      await job.moveToWait(token)
      throw new WaitingError()
    }
    const controller = new AbortController()
    const work = handle(job, controller.signal)
    running.set(controller, work)
    try {
      return await work
    } finally {
      running.delete(controller)
    }
  }

  const worker = new PatientWorker(
    queueName,
    handleJob,
    { ...workerSettings, concurrency, connection: {} },
    engine.backend,
  )
  worker.on('error', (error) => report(error, `queue: worker of ${queueName}`))

  const pause = async () => {
    stopping = true
    await worker.pause(true)
  }

  const close = async (timeoutMs: number) => {
    await pause()
    const drained = () => Promise.allSettled(running.values())
    if (!(await settlesWithin(drained(), timeoutMs))) {
      for (const controller of running.keys()) controller.abort(new Error('the consumer is closing'))
      await settlesWithin(drained(), graceMs)
    }
    const graceful = running.size === 0 && (await isAnswering(engine))
    if (!graceful) await settlesWithin(worker.interrupt(), graceMs)
    if (!(await settlesWithin(worker.close(!graceful), closeTimeoutMs)))
      await settlesWithin(worker.abandon(), graceMs)
  }

  return {
    pause,
    close: (timeoutMs = 10_000) => {
      closing ??= close(timeoutMs)
      return closing
    },
  }
}
