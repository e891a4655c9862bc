import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { passesSoon } from '../../accounts/budget-checks.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import { sha256 } from '../../infra/lib/ids.ts'
import type { IntakeJob } from '../../infra/queue/jobs.ts'
import { openSignedJob } from '../../infra/queue/signed-jobs.ts'
import { isMasonError, type MasonError, toMasonError } from '../../state/errors.ts'
import { type FieldError, toFieldErrors } from '../../state/resource-schema.ts'
import { businessIdSchema, type JobData, jobDataSchema, maxRequestBytes } from '../../state/run-request.ts'
import type { Admission } from './admission.ts'

const maxIdLength = 255
/** As in HTTP bodies. */
const maxDepth = 100

const jobSchema = jobDataSchema.extend({ business_id: businessIdSchema.default('default') })

/** An unexpected error may pass: after so many tries, or as many lost workers, the job is rejected. */
const maxTries = 5

/** Why a job was refused, as `rejected_jobs` has it. */
export type Rejection = { errors: FieldError[] }

/**
 * Admits one job of the public queue; its id is the idempotency key. A job that cannot be admitted goes to `rejected_jobs`
 * with its errors, and stays refused when it comes again. `business_id` is trusted: who can write to the queue acts for any business, unless `signing` has secrets;
 * then jobs that are not signed by one are rejected. Throws when the database is unreachable or the business has too many queued runs; the queue then
 * delivers the job again.
 */
export const admitIntakeJob = async (
  database: Database,
  job: IntakeJob,
  admit: (businessId: string, request: JobData, key: string) => Promise<Admission>,
  signing: { secrets: readonly string[]; now: Date } = { secrets: [], now: new Date() },
): Promise<Admission | Rejection> => {
  if (isTooLarge(job.data)) {
    const errors = toJobErrors(
      `the data is larger than ${maxRequestBytes} bytes; upload its files with POST /v1/files and name them by file_id`,
    )
    const named = signing.secrets.length === 0 ? readBusinessId(job.data) : null
    return rejectJob(database, job, '"[this data is too large to be kept]"', errors, named)
  }
  // of large data each step takes a tenth of a second: others get turns between them
  const json = toJson(job.data)
  await nextTurn()
  const earlier = await findRejection(database, job.id, json)
  if (earlier) return earlier
  const opened = openSignedJob(job.id, job.data, signing.secrets, signing.now)
  // of no business, since its signature proves none
  if ('error' in opened)
    return rejectJob(database, job, json, [{ pointer: '/signature', detail: opened.error }], null)
  const checked = checkJob({ ...job, data: opened.data })
  const named = readBusinessId(opened.data)
  if ('errors' in checked) return rejectJob(database, job, json, checked.errors, named)
  const { business_id: businessId, ...request } = checked.data
  await nextTurn()
  try {
    return await admit(businessId, request, job.id)
  } catch (error) {
    if (isMasonError(error, 'database_unavailable', 'too_many_requests') || passesSoon(error)) throw error
    if (!isMasonError(error) && job.attemptsMade + 1 < maxTries) throw error
    const mayPass = isMasonError(error, 'budget_exhausted')
    return rejectJob(database, job, json, listFieldErrors(toMasonError(error)), named, mayPass)
  }
}

const toJobErrors = (detail: string): FieldError[] => [{ pointer: '', detail }]

const checkJob = (job: IntakeJob): { data: z.infer<typeof jobSchema> } | { errors: FieldError[] } => {
  const jobError = findJobError(job)
  if (jobError) return { errors: toJobErrors(jobError) }
  const parsed = jobSchema.safeParse(job.data)
  return parsed.success ? parsed : { errors: toFieldErrors(parsed.error) }
}

/** The data of a job that an admin submits again, or its errors. */
export const checkJobData = (id: string, data: unknown): ReturnType<typeof checkJob> =>
  checkJob({ id, name: 'run', data, attemptsMade: 0, stalls: 0 })

const findJobError = ({ stalls, name, id, data }: IntakeJob): string | null => {
  if (stalls >= maxTries)
    return `${stalls} workers were lost while they took this job; read their logs before you send it again`
  if (name !== 'run') return `jobs are named "run", not "${name}"`
  if (id.includes('\u0000') || id.length > maxIdLength)
    return `job ids have at most ${maxIdLength} characters and no NUL`
  return nestsDeeper(data, maxDepth) ? `the data is nested deeper than ${maxDepth} levels` : null
}

/** Stops at `levels`: a deep value would overflow the stack of any other recursion. */
const nestsDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((item) => nestsDeeper(item, levels - 1)))

/** By its texts alone, which are read without copying; those deeper than it may be have an error of their own. */
const isTooLarge = (data: unknown): boolean => {
  let left = maxRequestBytes
  const isOver = (value: unknown, levels: number): boolean => {
    if (typeof value === 'string') left -= value.length
    const isParent = typeof value === 'object' && value !== null && levels > 0
    return left < 0 || (isParent && Object.values(value).some((item) => isOver(item, levels - 1)))
  }
  return isOver(data, maxDepth)
}

const listFieldErrors = (error: MasonError): FieldError[] => {
  const errors = (error.detail as { errors?: FieldError[] } | undefined)?.errors
  return errors ?? toJobErrors(error.message)
}

const rejectJob = async (
  database: Database,
  job: IntakeJob,
  json: string,
  errors: FieldError[],
  businessId: string | null,
  mayPass = false,
): Promise<Rejection> => {
  const hash = sha256(json)
  const insert = (data: string) =>
    database.query(
      `INSERT INTO rejected_jobs (tenant, job_id, data, faults, data_hash, may_pass)
       VALUES ((SELECT tenant FROM businesses WHERE tenant = $1), $2, $3::json, $4::json, $5, $6) ON CONFLICT DO NOTHING`,
      [businessId, toStorableText(job.id), data, JSON.stringify(errors), hash, mayPass],
    )
  await insert(json).catch((error: unknown) => {
    if (isDatabaseUnavailable(error)) throw error
    return insert(JSON.stringify('[this data cannot be stored]'))
  })
  return { errors }
}

/** Why this job was refused before, unless it has become a run since or the reason may have passed. */
const findRejection = async (database: Database, id: string, json: string): Promise<Rejection | null> =>
  queryOne<Rejection>(
    database,
    'SELECT faults AS errors FROM rejected_jobs WHERE job_id = $1 AND data_hash = $2 AND run_id IS NULL AND NOT may_pass',
    [toStorableText(id), sha256(json)],
  )

/** Postgres texts cannot contain NUL. */
const toStorableText = (text: string): string => text.replaceAll('\u0000', '\ufffd').slice(0, 2000)

const toJson = (data: unknown): string => {
  try {
    return JSON.stringify(data ?? null)
  } catch {
    return JSON.stringify('[this data is nested too deeply]')
  }
}

const readBusinessId = (data: unknown): string | null =>
  z.object({ business_id: businessIdSchema }).safeParse(data).data?.business_id ?? null
