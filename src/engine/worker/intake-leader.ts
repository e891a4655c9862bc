import type { Database } from '../../infra/database/database.ts'
import { repeatWork } from '../../infra/lib/repeat-work.ts'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import type { IntakeQueue } from '../../infra/queue/intake-queue.ts'
import type { IntakeJob } from '../../infra/queue/jobs.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import { claimSettledJobs, forgetHeldJobs } from '../runs/held-jobs.ts'
import type { Intake, JobResult } from '../runs/intake-batches.ts'
import { acquireIntake, intakeLeaseMs, LeaseLostError, renewIntake } from '../runs/intake-lease.ts'

/** What a worker needs to lead the intake. */
type IntakeLeaderOptions = {
  database: Database
  openQueue(mayTake: () => boolean): IntakeQueue
  intake: Intake
  clock: Clock
  log: Log
  workerId: string
}

const candidateEveryMs = 500
const renewEveryMs = 1000
const releaseEveryMs = 500
const maxBatch = 64
/** How long a leader that stops waits for the jobs that it ends. */
const stopMs = 5000

type Term = { epoch: number; isOver(): boolean; workerStops: AbortSignal }

/**
 * The intake of the public queue: of all workers of a database one takes its jobs, under a lease. Any error ends its term; the next
 * one does again what was not committed. A clean stop ends the lease at once.
 */
export const startIntakeLeader = (options: IntakeLeaderOptions): { stop(): Promise<void> } => {
  const { database, clock, log, workerId } = options
  const stopping = new AbortController()
  let queue: IntakeQueue | null = null
  let lastProblem = ''

  const runTerm = async (): Promise<void> => {
    let leasedFrom = clock.monotonicMs()
    const epoch = stopping.signal.aborted ? null : await acquireIntake(database, workerId)
    if (epoch === null) return
    let isLost = false
    const isOver = (): boolean =>
      isLost || stopping.signal.aborted || clock.monotonicMs() - leasedFrom >= intakeLeaseMs
    const renew = async (): Promise<void> => {
      const from = clock.monotonicMs()
      isLost ||= !(await renewIntake(database, epoch))
      leasedFrom = from
    }
    const renewal = repeatWork(renew, renewEveryMs, clock, log, 'renewing the lease of the intake')
    const opened = options.openQueue(() => !isOver())
    queue = opened
    try {
      await lead(opened, { epoch, isOver, workerStops: stopping.signal }, options, () => {
        lastProblem = ''
      })
      if (!(await opened.isOurs())) stopping.abort()
    } finally {
      queue = null
      await renewal.stop()
      await renewIntake(database, epoch, 0).catch(() => {})
      await opened.close()
    }
  }

  const tryTerm = (): Promise<void> =>
    runTerm().catch((error: unknown) => {
      if (error instanceof LeaseLostError || String(error) === lastProblem || stopping.signal.aborted) return
      lastProblem = String(error)
      log.warn({ error: lastProblem }, 'taking jobs of the public queue failed and will be retried')
    })

  const loop = repeatWork(tryTerm, candidateEveryMs, clock, log, 'leading the intake')
  return {
    async stop() {
      stopping.abort()
      await queue?.interrupt()
      await settlesWithin(loop.stop(), stopMs * 2)
    },
  }
}

/**
 * One term. The leader takes one job after the other, up to 64, and admits what Redis has as taken, in Redis's order. That list,
 * not this process, says what was taken when: a new leader finds there what the one before had taken, and a job that a
 * former leader takes too late is there before those that come after it.
 */
const lead = async (
  queue: IntakeQueue,
  { epoch, isOver, workerStops }: Term,
  { database, intake, clock, log }: IntakeLeaderOptions,
  onProgress: () => void,
): Promise<void> => {
  /** Taken in this term and not ended. */
  const mine = new Set<string>()
  const endings = new Set<Promise<void>>()
  let isFirst = true
  let releasedAt = Number.NEGATIVE_INFINITY

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

  const admit = async (jobs: readonly IntakeJob[]): Promise<void> => {
    if (jobs.length === 0) return
    const results = await intake.admit(jobs, epoch)
    for (const [at, { id }] of jobs.entries()) startEnding(id, results[at] as JobResult)
    onProgress()
  }
  /** One that Redis has lost stays among ours: there is nothing to end. */
  const recover = async (id: string): Promise<void> => {
    mine.add(id)
    const result = await intake.recover(id, queue, epoch)
    if (result) startEnding(id, result)
  }

  const takeBatch = async (): Promise<Map<string, IntakeJob>> => {
    const batch = new Map<string, IntakeJob>()
    while (batch.size < maxBatch) {
      const job = await queue.take(batch.size === 0 && !isFirst).catch((error: unknown) => {
        if (batch.size === 0) throw error
        return null
      })
      if (!job) break
      batch.set(job.id, job)
      mine.add(job.id)
    }
    isFirst = false
    return batch
  }

  const admitInOrder = async (batch: Map<string, IntakeJob>): Promise<void> => {
    // before it is read: what is ended meanwhile is still in the list
    const known = new Set(mine)
    const taken = await queue.listTaken().catch((error: unknown) => {
      if (batch.size === 0) throw error
      return []
    })
    let together: IntakeJob[] = []
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
    releasedAt = clock.monotonicMs()
    await intake.release(epoch)
    const settled = await claimSettledJobs(database)
    const gone = await Promise.all(
      settled.map(async ({ seq, job_id }) => ((await queue.unpark(job_id)) ? [] : [seq])),
    )
    await forgetHeldJobs(database, gone.flat())
  }

  while (!isOver()) {
    if (clock.monotonicMs() - releasedAt >= releaseEveryMs) await release()
    if (!(await queue.isOurs())) return
    await admitInOrder(await takeBatch())
  }
  if (workerStops.aborted) await settlesWithin(Promise.all(endings), stopMs)
}
