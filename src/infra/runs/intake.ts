import { z } from 'zod'
import { isMasonError, type MasonError } from '../../state/errors.ts'
import type { RunRequest } from '../../state/run-request.ts'
import { idSchema, runRequestSchema } from '../../state/run-request.ts'
import type { Database } from '../database/database.ts'
import type { IntakeJob } from '../queue/queue.ts'
import type { Admission } from './admit.ts'

type Fault = { pointer: string; detail: string }

const jobSchema = runRequestSchema.extend({ business_id: idSchema.default('default') })

/**
 * Admits one job of the public queue; its id is the idempotency key. What cannot be admitted goes to `rejected_jobs`
 * with its faults. Rejects only when the database could not be reached, and the job then comes again.
 */
export const takeIntakeJob = async (
  database: Database,
  job: IntakeJob,
  admit: (businessId: string, request: RunRequest, key: string) => Promise<Admission>,
): Promise<Admission | null> => {
  const parsed = job.name === 'run' ? jobSchema.safeParse(job.data) : null
  if (!parsed)
    return reject(database, job, [{ pointer: '', detail: `jobs are named "run", not "${job.name}"` }])
  if (!parsed.success) return reject(database, job, faultsOf(parsed.error))
  const { business_id: businessId, ...request } = parsed.data
  try {
    return await admit(businessId, request, job.id)
  } catch (error) {
    if (!isMasonError(error, 'invalid_request', 'idempotency_conflict', 'session_of_another_user'))
      throw error
    return reject(database, job, faultsIn(error))
  }
}

/** The faults of a body, each with a JSON pointer to where it stands. */
export const faultsOf = (error: z.ZodError): Fault[] =>
  error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          pointer: pointerTo([...issue.path, key]),
          detail: 'is not a known field',
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
  await database.query(
    `INSERT INTO rejected_jobs (tenant, job_id, data, faults)
     VALUES ((SELECT tenant FROM businesses WHERE tenant = $1), $2, $3::json, $4::json) ON CONFLICT (job_id) DO NOTHING`,
    [businessIn(job.data), job.id, JSON.stringify(job.data ?? null), JSON.stringify(faults)],
  )
  return null
}

const businessIn = (data: unknown): string | null => {
  const parsed = z.object({ business_id: idSchema }).safeParse(data)
  return parsed.success ? parsed.data.business_id : null
}
