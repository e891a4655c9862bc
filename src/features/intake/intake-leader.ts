import type { Database } from '../../infra/database/database.ts'
import { repeatWork } from '../../infra/lib/repeat-work.ts'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import { claimSettledJobs, forgetHeldJobs } from './held-jobs.ts'
import type { Intake, JobResult } from './intake-batches.ts'
import { acquireIntake, intakeLeaseMs, LeaseLostError, renewIntake } from './intake-lease.ts'
import type { IntakeQueue, TakenJob } from './intake-queue.ts'

/** What a worker needs to lead the intake. */
type IntakeLeaderOptions = {
  database: Database
  /** Null: there is none. */
  openQueue(mayTake: () => boolean): IntakeQueue | Promise<IntakeQueue | null>
  intake: Intake
  clock: Clock
  log: Log
  workerId: string
}

const renewEveryMs = 1000
const releaseEveryMs = 500
const maxBatch = 64
/** How much data is taken, and admitted, at once. A larger job goes alone: it may cost its leader. */
const maxBatchLength = 4 * 1024 * 1024
/** How long a leader that stops waits for the jobs that it ends. */
const stopMs = 5000

type Term = { epoch: number; isOver(): boolean; workerStops: AbortSignal }

/**
 * The intake of the public queue: of all workers of a database one takes its jobs, under a lease. Any error ends its term; the next
 * one does again what was not committed. A clean stop ends the lease at once, and a leader that has lost Redis lets it end.
 */
export const createIntakeLeader = (options: IntakeLeaderOptions) => {
  const { database, clock, log, workerId, openQueue } = options
  const stopping = new AbortController()
  let mayTake = (): boolean => false
  let opened: IntakeQueue | null = null
  let lastProblem = ''

  const runTerm = async (): Promise<void> => {
    opened ??= await openQueue(() => mayTake())
    const queue = opened
    // one without Redis does not compete for the lease
    if (!queue || stopping.signal.aborted || !(await queue.isOurs())) return
    let leasedFrom = clock.monotonicMs()
    const epoch = await acquireIntake(database, workerId)
    if (epoch === null) return
    let isLost = false
    const hasEnded = (): boolean => isLost || clock.monotonicMs() - leasedFrom >= intakeLeaseMs
    const isOver = (): boolean => hasEnded() || stopping.signal.aborted
    const renew = async (): Promise<void> => {
      if (hasEnded()) return
      const from = clock.monotonicMs()
      // its takes hang while Redis is away, and another worker may still reach it
      await queue.isOurs()
      isLost ||= !(await renewIntake(database, epoch))
      leasedFrom = from
    }
    const renewal = repeatWork(renew, renewEveryMs, clock, log, 'renewing the lease of the intake')
    mayTake = () => !isOver()
    try {
      await leadIntake(queue, { epoch, isOver, workerStops: stopping.signal }, options, () => {
        lastProblem = ''
      })
    } finally {
      await renewal.stop()
      await renewIntake(database, epoch, 0).catch(() => {})
    }
  }

  return {
    /** One term, where no other worker leads. */
    lead: (): Promise<void> =>
      runTerm().catch((error: unknown) => {
        if (error instanceof LeaseLostError || String(error) === lastProblem || stopping.signal.aborted)
          return
        lastProblem = String(error)
        log.warn({ error: lastProblem }, 'taking jobs of the public queue failed and will be retried')
      }),
    /** Ends the term in progress, which `lastTerm` is. */
    async stop(lastTerm: Promise<void>): Promise<void> {
      stopping.abort()
      await opened?.interrupt()
      await settlesWithin(lastTerm, stopMs * 2)
      await opened?.close()
    },
  }
}

/** See `createIntakeLeader`. */
export type IntakeLeader = ReturnType<typeof createIntakeLeader>

/**
 * One term. The leader takes one job after the other, up to 64, and admits what Redis has as taken, in Redis's order. That list,
 * not this process, says what was taken when: a new leader finds there what the one before had taken, and a job that a
 * former leader takes too late is there before those that come after it.
 */
export const leadIntake = async (
  queue: IntakeQueue,
  { epoch, isOver, workerStops }: Term,
  { database, intake, clock, log }: Pick<IntakeLeaderOptions, 'database' | 'intake' | 'clock' | 'log'>,
  onProgress: () => void,
): Promise<void> => {
  /** Taken in this term and not ended. */
  const mine = new Set<string>()
  const endings = new Set<Promise<void>>()
  let isFirst = true
  /** Whether the last list did not fail: then at most the last take of this term may be missing from a batch. */
  let isListed = false
  let releasedAt = Number.NEGATIVE_INFINITY
  const isMoreDue = (): boolean => releasedAt === Number.NEGATIVE_INFINITY

  const end = async (id: string, result: JobResult): Promise<void> => {
    if ('heldUntil' in result) return queue.park(id, result.heldUntil)
    await queue.end(id, result.outcome)
    if (result.seq !== null) await forgetHeldJobs(database, [result.seq])
  }
  /** Not waited for: a job that could not be ended is found among the taken ones, and is the same run then. */
  const startEnding = (id: string, result: JobResult): void => {
    const ending = end(id, result)
      .catch((error: unknown) =>
        log.warn({ error: String(error), job_id: id }, 'a queue job could not be ended and will be retried'),
      )
      .then(() => {
        mine.delete(id)
        endings.delete(ending)
      })
    endings.add(ending)
  }

  const admit = async (jobs: readonly TakenJob[]): Promise<void> => {
    for (const some of splitByLength(jobs)) {
      const results = await intake.admit(some, epoch)
      for (const [at, { id }] of some.entries()) startEnding(id, results[at] as JobResult)
      onProgress()
    }
  }
  /** One that Redis has lost stays among ours: there is nothing to end. */
  const recover = async (id: string): Promise<void> => {
    mine.add(id)
    const result = await intake.recover(id, queue, epoch)
    if (result) startEnding(id, result)
  }

  const takeBatch = async (): Promise<Map<string, TakenJob>> => {
    const batch = new Map<string, TakenJob>()
    for (let length = 0; batch.size < maxBatch && length < maxBatchLength; ) {
      const job = await queue.take(batch.size === 0 && !isMoreDue()).catch((error: unknown) => {
        if (batch.size === 0) throw error
        return null
      })
      if (!job) break
      batch.set(job.id, job)
      mine.add(job.id)
      length += job.length
    }
    return batch
  }

  const listTaken = async (batch: Map<string, TakenJob>): Promise<string[]> => {
    try {
      const taken = await queue.listTaken()
      isListed = true
      return taken
    } catch (error) {
      // Redis may come back empty: once this batch goes on in the order in which it was taken
      if (batch.size === 0 || !isListed) throw error
      isListed = false
      return []
    }
  }

  const admitInOrder = async (batch: Map<string, TakenJob>): Promise<void> => {
    // before it is read: what is ended meanwhile is still in the list
    const known = new Set(mine)
    const taken = await listTaken(batch)
    let together: TakenJob[] = []
    for (const id of taken) {
      const job = batch.get(id)
      batch.delete(id)
      if (job) together.push(job)
      else if (!known.has(id)) {
        await admit(together)
        together = []
        await recover(id)
      }
    }
    // of those that Redis has lost since, this process knows the order
    await admit([...together, ...batch.values()])
  }

  const release = async (): Promise<void> => {
    const from = clock.monotonicMs()
    const isMore = await intake.release(epoch)
    releasedAt = isMore ? Number.NEGATIVE_INFINITY : from
    const settled = await claimSettledJobs(database)
    const gone = await Promise.all(
      settled.map(async ({ seq, job_id }) => ((await queue.unpark(job_id)) ? [] : [seq])),
    )
    await forgetHeldJobs(database, gone.flat())
  }

  while (!isOver()) {
    if (!(await queue.isOurs())) return
    // what others had taken, counted, before anything that may cost this leader too
    if (isFirst) await admitInOrder(new Map())
    isFirst = false
    if (clock.monotonicMs() - releasedAt >= releaseEveryMs) await release()
    const batch = await takeBatch()
    // the queue may have gone to another database while this one waited: its leader finds these jobs among the taken ones
    if (batch.size > 0 && !(await queue.isOurs())) return
    await admitInOrder(batch)
  }
  if (workerStops.aborted) await settlesWithin(Promise.all(endings), stopMs)
}

/** In their order, as many together as `maxBatchLength` allows. */
const splitByLength = (jobs: readonly TakenJob[]): TakenJob[][] => {
  const parts: TakenJob[][] = []
  let length = Number.POSITIVE_INFINITY
  for (const job of jobs) {
    length += job.length
    if (length > maxBatchLength) {
      parts.push([])
      length = job.length
    }
    parts.at(-1)?.push(job)
  }
  return parts
}
