import { setTimeout as sleep } from 'node:timers/promises'
import { type IQueueBackend, type Job, type JobJson, WaitingError, Worker, type WorkerOptions } from 'bullmq'
import { settlesWithin } from './deadline.ts'
import type { Engine } from './engine.ts'
import { type HandleJob, intakeBackoffMs, takeOver } from './jobs.ts'
import type { Consumer } from './queue.ts'
import type { ErrorReporter } from './report.ts'

const graceMs = 500
const farewellMs = 2_000

const workerSettings = {
  lockDuration: 60_000,
  stalledInterval: 15_000,
  // With the default of 1 the second crash under a job would fail it for ever.
  maxStalledCount: 1_000_000,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
  runRetryDelay: 1_000,
  settings: { backoffStrategy: intakeBackoffMs },
} satisfies Partial<WorkerOptions>

/** A worker that neither spins when claiming fails nor stumbles over data that is no JSON. */
class PatientWorker extends Worker<unknown, void, string, IQueueBackend> {
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
      return super.createJob(json, id)
    } catch {
      return super.createJob({ ...json, data: JSON.stringify(json.data) }, id)
    }
  }

  /** Wakes the wait for the next job, which a forced close alone would leave ticking for seconds. */
  async interrupt(): Promise<void> {
    await this.backend.disconnectBlocking(false)
  }

  /** Stops what a close that hangs would leave behind. */
  async abandon(): Promise<void> {
    await this.lockManager.close()
    await this.backend.close(true)
  }
}

const answers = async (engine: Engine): Promise<boolean> => {
  if (engine.fault() !== null) return false
  let answered = false
  const trip = engine.roundTrip().then(() => {
    answered = true
  })
  await settlesWithin(trip, graceMs)
  return answered
}

/**
 * Calls `handle` for each job of a queue, and again for one that rejected. Losing a job's lock (Redis came back
 * empty) aborts nothing: the fence is the run's lease in the database, the queue only rings.
 */
export function startConsumer(
  engine: Engine,
  queueName: string,
  concurrency: number,
  handle: HandleJob,
  report: ErrorReporter,
): Consumer {
  const running = new Map<AbortController, Promise<void>>()
  let stopping = false
  let closing: Promise<void> | undefined

  const handleJob = async (job: Job, token = ''): Promise<void> => {
    takeOver(job)
    if (stopping) {
      await job.moveToWait(token)
      throw new WaitingError()
    }
    const controller = new AbortController()
    const work = handle(job, controller.signal)
    running.set(controller, work)
    try {
      await work
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
    const graceful = running.size === 0 && (await answers(engine))
    if (!graceful) await settlesWithin(worker.interrupt(), graceMs)
    if (!(await settlesWithin(worker.close(!graceful), farewellMs)))
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
