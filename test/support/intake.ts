import { ensureBusiness } from '../../src/accounts/businesses.ts'
import type { JobAdmissions } from '../../src/engine/runs/business-runs.ts'
import { createIntake, type Intake, type JobResult } from '../../src/features/intake/intake-batches.ts'
import { createIntakeLeader } from '../../src/features/intake/intake-leader.ts'
import { acquireIntake, LeaseLostError, renewIntake } from '../../src/features/intake/intake-lease.ts'
import { type IntakeQueue, openIntakeQueue } from '../../src/features/intake/intake-queue.ts'
import { type Database, queryOne } from '../../src/infra/database/database.ts'
import { repeatWork } from '../../src/infra/lib/repeat-work.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { JobOutcome } from '../../src/infra/queue/job-outcome.ts'
import type { IntakeJob } from '../../src/infra/queue/jobs.ts'
import type { Queues } from '../../src/infra/queue/queues.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import { until } from './runs.ts'

type TestIntakeOptions = {
  secrets?: readonly string[]
  check?: JobAdmissions['check']
  sleep?: Clock['sleep']
}

/** The intake of a database alone, which checks no names and waits for nothing. */
export const openTestIntake = (
  database: Database,
  { secrets = [], check, sleep = async () => {} }: TestIntakeOptions = {},
): Intake =>
  createIntake({
    ...{ database, clock: { ...systemClock, sleep }, log: silentLog, queueSecrets: secrets },
    of: (business) => ({
      async check(request) {
        await ensureBusiness(database, business)
        return check ? check(request) : new Map()
      },
      announce() {},
    }),
  })

/** The epoch of the leader, its lease renewed: at its end a claim finds nothing; where there is none, this test becomes it. */
export const readEpoch = (database: Database): Promise<number> =>
  until('an epoch', async () => {
    const row = await queryOne<{ epoch: number }>(database, 'SELECT epoch FROM intake_lease', [])
    if (row && (await renewIntake(database, row.epoch))) return row.epoch
    return acquireIntake(database, 'test')
  })

/** Does it as the leader, again where the lease has ended meanwhile. */
export const asLeader = async <T>(database: Database, work: (epoch: number) => Promise<T>): Promise<T> => {
  for (;;)
    try {
      return await work(await readEpoch(database))
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error
    }
}

/** Leads the intake as the loop of a worker does. */
export const startIntakeLeader = (
  options: Parameters<typeof createIntakeLeader>[0],
): { stop(): Promise<void> } => {
  const leader = createIntakeLeader(options)
  const loop = repeatWork(() => leader.lead(), 500, options.clock, options.log, 'leading the intake')
  return { stop: () => leader.stop(loop.stop()) }
}

/** The intake queue of these queues, which are on Redis. */
export const openIntakeOf = ({ driver }: Queues, mayTake = () => true): IntakeQueue => {
  if (!driver) throw new Error('a queue on Redis has an intake')
  return openIntakeQueue(driver, silentLog, mayTake)
}

/** Admits jobs as the leader does. */
export const deliverAll = (intake: Intake, database: Database, jobs: readonly IntakeJob[]) =>
  asLeader(database, (epoch) => intake.admit(jobs, epoch))

/** Admits one job as the leader does; its outcome, or until when it is held. */
export const deliver = async (
  intake: Intake,
  database: Database,
  id: string,
  data: unknown,
  name = 'run',
): Promise<JobOutcome | { heldUntil: Date }> => {
  const [result] = await deliverAll(intake, database, [{ id, name, data }])
  return readResult(result as JobResult)
}

const readResult = (result: JobResult): JobOutcome | { heldUntil: Date } =>
  'outcome' in result ? result.outcome : result

/** A queue without Redis, that any number of leaders may open. */
export const createFakeQueue = () => {
  const jobs = new Map<string, IntakeJob>()
  const waiting: string[] = []
  const taken: string[] = []
  const parked = new Set<string>()
  const outcomes = new Map<string, JobOutcome>()
  const remove = (id: string): boolean => {
    const at = taken.indexOf(id)
    if (at >= 0) taken.splice(at, 1)
    return at >= 0
  }
  return {
    ...{ waiting, taken, parked, outcomes },
    add(...more: IntakeJob[]): void {
      for (const job of more) {
        jobs.set(job.id, job)
        waiting.push(job.id)
      }
    },
    /** As if Redis came back empty. */
    empty(): void {
      for (const list of [waiting, taken]) list.length = 0
      for (const set of [jobs, parked]) set.clear()
    },
    open: (mayTake: () => boolean): IntakeQueue => ({
      async take(wait) {
        if (wait && waiting.length === 0) await systemClock.sleep(5)
        const id = mayTake() ? waiting.shift() : undefined
        if (id === undefined) return null
        taken.push(id)
        const job = jobs.get(id)
        return job ? { ...job, length: JSON.stringify(job.data).length } : null
      },
      listTaken: async () => [...taken],
      read: async (id) => jobs.get(id) ?? null,
      async readText(id) {
        const job = jobs.get(id)
        return job ? JSON.stringify(job.data) : null
      },
      async end(id, outcome) {
        if (!remove(id)) return
        jobs.delete(id)
        outcomes.set(id, outcome)
      },
      async park(id) {
        if (remove(id)) parked.add(id)
      },
      async unpark(id) {
        if (parked.delete(id)) waiting.push(id)
        return jobs.has(id)
      },
      isOurs: async () => true,
      interrupt: async () => {},
      close: async () => {},
    }),
  }
}
