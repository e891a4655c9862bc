import { submitRoute } from '../../engine/runs/admission.ts'
import { type Database, hasRow, queryOne } from '../../infra/database/database.ts'
import { isStatementTimeout } from '../../infra/database/database-errors.ts'
import { readableJson } from '../../infra/database/pagination.ts'
import type { JobOutcome } from '../../infra/queue/job-outcome.ts'
import type { IntakeJob } from '../../infra/queue/jobs.ts'
import type { SignedJob } from '../../infra/queue/signed-jobs.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import { type InvalidJob, toJobErrors, toJobFacts, toUnparsedFacts } from './intake.ts'
import { endsTerm } from './intake-lease.ts'
import type { IntakeQueue } from './intake-queue.ts'
import { findSignatureError } from './job-signatures.ts'

/** After so many lost workers a job is rejected. The first may have died of another job, two more of what has nothing to do with it. */
const maxLost = 4

/** For so long a worker lives before it tries a job that others were lost with: one that dies anyway counts for nothing. */
const quietMs = 1000

const countStatement = `
  INSERT INTO recovered_jobs AS r (job_id) VALUES ($1)
  ON CONFLICT (job_id) DO UPDATE SET attempts = r.attempts + 1, counted_at = clock_timestamp() RETURNING attempts`

const takeBackStatements = {
  recovered: 'UPDATE recovered_jobs SET attempts = attempts - 1 WHERE job_id = $1 AND attempts > 0',
  held: 'UPDATE held_jobs SET attempts = attempts - 1 WHERE seq = $1 AND attempts > 0',
}

/** The parts of a signed job, as text: nothing of it is parsed here. */
const sentStatement = `
  SELECT data->>'payload' AS payload, data->>'signature' AS signature FROM (SELECT ${readableJson('$1::json')} AS data) sent`

/** The run that an unparsed job became. It is found by its key, user and prompt: the hash of its request cannot be made. */
const admittedStatement = `
  SELECT i.response->>'id' AS run_id, 'queued' AS status FROM (SELECT ${readableJson('$3::json')} AS data) sent
  JOIN idempotency i ON i.tenant = COALESCE($4, sent.data->>'business_id', 'default') AND i.route = $1 AND i.key = $2
  JOIN run_requests q ON q.tenant = i.tenant AND q.run_id = i.response->>'id'
  WHERE q.user_id = sent.data->>'user_id' AND ${readableJson('q.request')}->>'prompt' IS NOT DISTINCT FROM sent.data->>'prompt'`

const describeLost = (workers: number): FieldError[] =>
  toJobErrors(
    `${workers} workers were lost while they took this job; read their logs before you send it again`,
  )

/** One that says nothing against a job; a statement of its own may be too slow. */
export const isPassing = (error: unknown): boolean => endsTerm(error) && !isStatementTimeout(error)

/** Where a job is read that another leader had taken. */
export type RecoveryQueue = Pick<IntakeQueue, 'read' | 'readText' | 'isOurs'>
type UnparsedJob = Pick<InvalidJob, 'id' | 'json' | 'hash' | 'business'>
type Nullable<T> = { [Key in keyof T]: T[Key] | null }
type Ended = { outcome: JobOutcome; seq: null }

type LostJobsOptions = {
  database: Database
  clock: Clock
  /** As of the intake. */
  secrets: readonly string[]
  rejectJob(job: UnparsedJob, errors: FieldError[]): Promise<JobOutcome>
}

/** The jobs that workers were lost with. Each is counted before it is read, so that a deadly one ends; passing errors count for nothing. */
export const createLostJobs = ({ database, clock, secrets, rejectJob }: LostJobsOptions) => {
  /** Null also for one that is not signed as it must be: its producer learns nothing of the business that it names. */
  const findAdmitted = async (job: UnparsedJob): Promise<JobOutcome | null> => {
    const sent = await queryOne<Nullable<SignedJob>>(database, sentStatement, [job.json])
    const { payload = null, signature } = sent ?? {}
    // that of a held one was checked when it came
    if (job.business === null && secrets.length > 0) {
      const signed = { payload: payload ?? '', signature: signature ?? '' }
      if (findSignatureError(job.id, signed, secrets, clock.now()) !== null) return null
    }
    const values = [submitRoute, job.id, payload ?? job.json, job.business]
    return queryOne<{ run_id: string; status: string }>(database, admittedStatement, values)
  }

  /** Refuses a job for lost workers, without parsing its data, unless the last of them had admitted it. */
  const rejectUnparsed = async (job: UnparsedJob, workers: number): Promise<JobOutcome> => {
    const admitted = await findAdmitted(job).catch((error: unknown) => {
      if (endsTerm(error)) throw error
      // it is no JSON that Postgres can read
      return null
    })
    return admitted ?? rejectJob(job, describeLost(workers))
  }

  /** Counts to take back as soon as the database answers: a worker that says what failed is not lost. */
  const owed: { statement: string; of: string | number }[] = []
  const takeBack = async (): Promise<void> => {
    for (let one = owed.pop(); one; one = owed.pop())
      try {
        await database.query(one.statement, [one.of])
      } catch (error) {
        owed.push(one)
        throw error
      }
  }
  const uncount = async (statement: string, of: string | number): Promise<void> => {
    owed.push({ statement, of })
    await takeBack().catch(() => {})
  }

  return {
    reject: rejectUnparsed,
    /** Takes back what could not be taken back before. */
    takeBack,
    uncountHeld: (seq: number): Promise<void> => uncount(takeBackStatements.held, seq),
    /** Has `admit` admit it alone, or rejects it unparsed where it is to blame. Null: Redis has lost it. */
    async recover<Result>(
      id: string,
      queue: RecoveryQueue,
      admit: (job: IntakeJob) => Promise<Result | null>,
    ): Promise<Result | Ended | null> {
      await takeBack()
      const unread = toJobFacts(id, '[this data was not read again]')
      const isSuspect = await hasRow(
        database,
        'SELECT FROM recovered_jobs WHERE job_id = $1 AND attempts > 0',
        [unread.id],
      )
      if (isSuspect) await clock.sleep(quietMs)
      const counted = await queryOne<{ attempts: number }>(database, countStatement, [unread.id])
      const lost = counted?.attempts ?? 0
      const settleUnparsed = async (): Promise<Ended | null> => {
        // reading it has cost a worker too
        if (lost > maxLost)
          return { outcome: await rejectJob({ ...unread, business: null }, describeLost(lost)), seq: null }
        const text = await queue.readText(id)
        if (text === null) return null
        const job = { ...toUnparsedFacts(id, text), business: null }
        return { outcome: await rejectUnparsed(job, lost), seq: null }
      }
      const admitAlone = async (): Promise<Result | null> => {
        const job = await queue.read(id)
        return job && admit(job)
      }
      try {
        const result = await (lost < maxLost ? admitAlone() : settleUnparsed())
        await database.query('DELETE FROM recovered_jobs WHERE job_id = $1', [unread.id])
        return result
      } catch (error) {
        const passes = isPassing(error) || !(await queue.isOurs().catch(() => false))
        if (passes) await uncount(takeBackStatements.recovered, unread.id)
        throw error
      }
    },
  }
}
