import { z } from 'zod'
import { isMasonError, type MasonError, toMasonError } from '../../state/errors.ts'
import type { RunRequest } from '../../state/run-request.ts'
import { businessIdSchema, runRequestSchema } from '../../state/run-request.ts'
import type { Database } from '../database/database.ts'
import { isUnavailable } from '../database/faults.ts'
import type { IntakeJob } from '../queue/queue.ts'
import type { Admission } from './admit.ts'

type Fault = { pointer: string; detail: string }

const maxIdLength = 255
/** As in HTTP bodies. */
const maxDepth = 100

const jobSchema = runRequestSchema.extend({ business_id: businessIdSchema.default('default') })

/** A fault that is not foreseen may be of the moment: after so many tries, or workers lost to it, the job is given up. */
const maxTries = 5

/**
 * Admits one job of the public queue; its id is the idempotency key. What cannot be admitted goes to `rejected_jobs`
 * with its faults. Throws when the database could not be reached or the business has too many runs waiting; the job
 * then comes again.
 */
export const takeIntakeJob = async (
  database: Database,
  job: IntakeJob,
  admit: (businessId: string, request: RunRequest, key: string) => Promise<Admission>,
): Promise<Admission | null> => {
  if (job.stalls >= maxTries) return reject(database, job, [killer(job)])
  const checked = check(job)
  if ('faults' in checked) return reject(database, job, checked.faults)
  const { business_id: businessId, ...request } = checked.data
  try {
    return await admit(businessId, request, job.id)
  } catch (error) {
    if (isMasonError(error, 'database_unavailable', 'too_many_requests')) throw error
    if (!isMasonError(error) && job.attemptsMade + 1 < maxTries) throw error
    return reject(database, job, faultsIn(toMasonError(error)))
  }
}

const killer = ({ stalls }: IntakeJob): Fault => ({
  pointer: '',
  detail: `${stalls} workers were lost while they took this job; look at what they logged before it is sent again`,
})

const check = (job: IntakeJob): { data: z.infer<typeof jobSchema> } | { faults: Fault[] } => {
  if (job.name !== 'run')
    return { faults: [{ pointer: '', detail: `jobs are named "run", not "${job.name}"` }] }
  if (job.id.includes('\u0000') || job.id.length > maxIdLength)
    return { faults: [{ pointer: '', detail: `job ids have at most ${maxIdLength} characters and no NUL` }] }
  if (nestsDeeper(job.data, maxDepth))
    return { faults: [{ pointer: '', detail: `the data is nested deeper than ${maxDepth} levels` }] }
  const parsed = jobSchema.safeParse(job.data)
  return parsed.success ? { data: parsed.data } : { faults: faultsOf(parsed.error) }
}

/** Deep values overflow every recursion; this one stops in time. */
const nestsDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((item) => nestsDeeper(item, levels - 1)))

/** The faults of a body, each with a JSON pointer to where it stands. */
export const faultsOf = (error: z.ZodError): Fault[] =>
  error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          pointer: pointerTo([...issue.path, key]),
          detail: 'unknown field',
        }))
      : [{ pointer: pointerTo(issue.path), detail: issue.message }],
  )

const pointerTo = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

const faultsIn = (error: MasonError): Fault[] => {
  const errors = (error.detail as { errors?: Fault[] } | undefined)?.errors
  return errors ?? [{ pointer: '', detail: error.message }]
}

const reject = async (database: Database, job: IntakeJob, faults: Fault[]): Promise<null> => {
  const [jobId, text] = [storable(job.id), JSON.stringify(faults)]
  await insertRejected(database, job, jobId, jsonOf(job.data), text).catch((error: unknown) => {
    if (isUnavailable(error)) throw error
    return insertRejected(database, job, jobId, JSON.stringify('[this data cannot be stored]'), text)
  })
  return null
}

/** Postgres has no NUL in texts. */
const storable = (text: string): string => text.replaceAll('\u0000', '\ufffd').slice(0, 2000)

const jsonOf = (data: unknown): string => {
  try {
    return JSON.stringify(data ?? null)
  } catch {
    return JSON.stringify('[this data is nested too deeply]')
  }
}

const insertRejected = (database: Database, job: IntakeJob, jobId: string, data: string, faults: string) =>
  database.query(
    `INSERT INTO rejected_jobs (tenant, job_id, data, faults)
     VALUES ((SELECT tenant FROM businesses WHERE tenant = $1), $2, $3::json, $4::json) ON CONFLICT (job_id) DO NOTHING`,
    [businessIn(job.data), jobId, data, faults],
  )

const businessIn = (data: unknown): string | null => {
  const parsed = z.object({ business_id: businessIdSchema }).safeParse(data)
  return parsed.success ? parsed.data.business_id : null
}
