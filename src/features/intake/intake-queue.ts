import { setTimeout as sleep } from 'node:timers/promises'
import {
  type IQueueBackend,
  isNotConnectionError,
  type Job,
  type JobJson,
  UnrecoverableError,
  Worker,
} from 'bullmq'
import { LRUCache } from 'lru-cache'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import type { JobOutcome } from '../../infra/queue/job-outcome.ts'
import { type IntakeJob, intakeQueueName, overrideJobOptions } from '../../infra/queue/jobs.ts'
import { describeQueueError, type QueueDriver } from '../../infra/queue/queue-driver.ts'
import type { Log } from '../../state/ports/log.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import { maxRequestBytes } from '../../state/run-request.ts'
import { hasLongNumbers, parseExactJson } from '../../state/text/exact-json.ts'

/** A job as it is taken; `length`: of its data as text. */
export type TakenJob = IntakeJob & { length: number }

/**
 * The jobs of the intake queue, for its only leader. While Redis is away `isOurs` rejects within 5 s, and all others wait until it
 * is back. A job that Redis has lost is no error.
 */
export type IntakeQueue = {
  /** The next job; null: there is none. `wait`: for a second at most. */
  take(wait: boolean): Promise<TakenJob | null>
  /** The ids of the jobs that were taken by any leader and have not ended, in the order in which Redis took them. */
  listTaken(): Promise<string[]>
  /** A job that was taken; null: Redis has lost it. */
  read(id: string): Promise<IntakeJob | null>
  /** Its data as text, not parsed. */
  readText(id: string): Promise<string | null>
  /** Ends a job that was taken. */
  end(id: string, outcome: JobOutcome): Promise<void>
  /** Puts a job that was taken aside until then; it does not count as taken. */
  park(id: string, until: Date): Promise<void>
  /** Queues a parked job again, last of its priority. False: Redis has no such job. */
  unpark(id: string): Promise<boolean>
  /** False once the queue belongs to another database. */
  isOurs(): Promise<boolean>
  /** Ends a wait of `take`. */
  interrupt(): Promise<void>
  close(): Promise<void>
}

/**
 * With this token BullMQ takes no lock of a job and asks for none: the lease in the database is the lock, and a lock that outlives
 * its leader would keep the next one from ending the job.
 */
const noLock = '0'
/** What `take` waits at most. */
const waitS = 1
/** A job whose time is over is not taken again at once: its row says when it ends. */
const minParkMs = 10_000
const closeMs = 1_000
const missingJob = -1
const otherState = -3

const toIntakeJob = ({ id = '', name, data }: Job): IntakeJob => ({ id, name, data })

const silenceMs = 30_000

/** Refused, reset, timed out and the like: errors of the operating system name their call. */
const isConnectionError = (error: Error) => 'syscall' in error || !isNotConnectionError(error)

/** Logs errors of BullMQ, each at most twice a minute. Lost connections are not logged, because the driver logs them once. */
const createErrorReporter = (log: Log, what: string): ((error: Error) => void) => {
  const recent = new LRUCache<string, true>({ max: 100, ttl: silenceMs })
  return (error) => {
    const problem = describeQueueError(error)
    if (isConnectionError(error) || recent.has(problem)) return
    recent.set(problem, true)
    log.error({ error }, what)
  }
}

/**
 * Its BullMQ worker runs no loop of its own: no lock is renewed, and no job counts as stalled. It pauses after a failed claim and
 * accepts data that is not JSON.
 */
class IntakeWorker extends Worker<unknown, unknown, string, IQueueBackend> {
  readonly #mayTake: () => boolean

  constructor(engine: QueueDriver, queueName: string, mayTake: () => boolean) {
    super(queueName, null, { autorun: false, drainDelay: waitS, connection: {} }, engine.backend)
    this.#mayTake = mayTake
  }

  /** BullMQ waits for this long, not for `drainDelay`, while a job is delayed or parked. */
  override get maximumBlockTimeout(): number {
    return waitS
  }

  /** Asked again after every wait: a leader that was frozen takes nothing. BullMQ's type leaves out that there may be no job. */
  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    if (!this.#mayTake()) return undefined as unknown as Job
    try {
      return await super.moveToActive(token, name)
    } catch (error) {
      if (!this.closing) await sleep(1_000)
      throw error
    }
  }

  readonly lengths = new WeakMap<Job, number>()

  protected override createJob(json: JobJson, id: string) {
    let job: Job
    const text = String(json.data)
    // what is too large is refused for its length, and not parsed
    const isLarge = text.length > maxRequestBytes
    try {
      job = super.createJob(isLarge ? { ...json, data: 'null' } : json, id)
      if (isLarge) job.data = text
      else if (hasLongNumbers(text)) job.data = parseExactJson(text)
    } catch {
      job = super.createJob({ ...json, data: JSON.stringify(json.data) }, id)
    }
    this.lengths.set(job, text.length)
    return job
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

  async listActive(): Promise<string[]> {
    const [newestLast = []] = await this.backend.getRanges(['active'], 0, -1, true)
    return newestLast.toReversed()
  }

  async readJson(id: string): Promise<JobJson | null> {
    return (await this.backend.getJobData(id)) ?? null
  }

  async readJob(id: string): Promise<Job | null> {
    const json = await this.readJson(id)
    return json && this.createJob(json, id)
  }

  /** A job of which only the id matters. */
  toJob(id: string): Job {
    const job = this.createJob({ id, name: '', data: 'null', opts: {} } as unknown as JobJson, id)
    overrideJobOptions(job)
    return job
  }

  async promote(id: string): Promise<boolean> {
    try {
      await this.backend.promote(id)
      return true
    } catch (error) {
      if (!hasCode(error, otherState)) throw error
      return (await this.backend.getJobData(id)) !== undefined
    }
  }
}

const maxReasonErrors = 100
const maxReasonLength = 1_000

/** What BullMQ stores and sends to every listener as `failedReason`: JSON of the errors, the first 100 of 1,000 characters each. */
const toFailedReason = (errors: readonly FieldError[]): string =>
  JSON.stringify(
    errors.slice(0, maxReasonErrors).map(({ pointer, detail }) => ({
      pointer: pointer.slice(0, maxReasonLength),
      detail: detail.slice(0, maxReasonLength),
    })),
  )

const hasCode = (error: unknown, ...codes: number[]): boolean =>
  codes.includes((error as { code?: number }).code ?? 0)

/** Opens the intake queue for a leader, which takes jobs while `mayTake` says so. */
export const openIntakeQueue = (engine: QueueDriver, log: Log, mayTake: () => boolean): IntakeQueue => {
  const worker = new IntakeWorker(engine, intakeQueueName, mayTake)
  worker.on('error', createErrorReporter(log, `queue: intake of ${intakeQueueName}`))
  /** Redis may have lost the job, or another leader has ended it. */
  const unlessGone = async (work: Promise<unknown>): Promise<void> => {
    await work.catch((error: unknown) => {
      if (!hasCode(error, missingJob, otherState)) throw error
    })
  }
  return {
    async take(wait) {
      const job = await worker.getNextJob(noLock, { block: wait })
      return job ? { ...toIntakeJob(job), length: worker.lengths.get(job) ?? 0 } : null
    },
    listTaken: () => worker.listActive(),
    async read(id) {
      const job = await worker.readJob(id)
      return job && toIntakeJob(job)
    },
    async readText(id) {
      const json = await worker.readJson(id)
      return json && String(json.data)
    },
    end: (id, outcome) =>
      unlessGone(
        'errors' in outcome
          ? worker
              .toJob(id)
              .moveToFailed(new UnrecoverableError(toFailedReason(outcome.errors)), noLock, false)
          : worker.toJob(id).moveToCompleted(outcome, noLock, false),
      ),
    park(id, until) {
      const time = Math.max(until.getTime(), Date.now() + minParkMs)
      return unlessGone(worker.toJob(id).moveToDelayed(time, noLock))
    },
    unpark: (id) => worker.promote(id),
    isOurs: () => engine.isOurs(),
    interrupt: async () => void (await settlesWithin(worker.interrupt(), closeMs)),
    async close() {
      await settlesWithin(worker.interrupt(), closeMs)
      if (!(await settlesWithin(worker.close(true), closeMs))) await settlesWithin(worker.abandon(), closeMs)
    },
  }
}
