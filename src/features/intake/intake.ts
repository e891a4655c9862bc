import { z } from 'zod'
import type { Database } from '../../infra/database/database.ts'
import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import { newSessionId, sha256 } from '../../infra/lib/ids.ts'
import { type IntakeJob, maxJobIdLength } from '../../infra/queue/jobs.ts'
import { type FieldError, toFieldErrors } from '../../state/resource-schema.ts'
import { businessIdSchema, type JobData, jobDataSchema, maxRequestBytes } from '../../state/run-request.ts'
import { maxJsonValues } from '../../state/text/json-size.ts'
import { nextTurn } from '../../state/text/next-turn.ts'
import { openSignedJob } from './job-signatures.ts'

/** As in HTTP bodies. */
const maxDepth = 100
/** Larger texts are read in steps, between which others get turns: each takes a tenth of a second at the limit. */
const largeLength = 65_536
const tooLargeNote = '[this data is too large to be kept]'

const jobSchema = jobDataSchema.extend({ business_id: businessIdSchema.default('default') })

type JobFacts = { id: string; json: string; hash: string }
/** A job that may be admitted. `session`: its own, or a new one. */
export type ValidJob = JobFacts & { business: string; session: string; request: JobData }
/** A job that cannot be admitted, and why. */
export type InvalidJob = JobFacts & { business: string | null; errors: FieldError[] }

/**
 * Reads a job of the public queue. `business_id` is trusted: who can write to the queue acts for any business, unless there are
 * secrets; then a job that is not signed by one of them is invalid, and of no business.
 */
export const readJob = async (
  job: IntakeJob,
  secrets: readonly string[],
  now: Date,
): Promise<ValidJob | InvalidJob> => {
  const excess = findExcess(job.data)
  if (excess) {
    const errors = toJobErrors(`the data ${excess}`)
    const business = secrets.length === 0 ? readBusinessId(job.data) : null
    return { ...toJobFacts(job.id, tooLargeNote), business, errors }
  }
  const facts = toJobFacts(job.id, job.data)
  if (facts.json.length > largeLength) await nextTurn()
  const opened = openSignedJob(job.id, job.data, secrets, now)
  if ('error' in opened)
    return { ...facts, business: null, errors: [{ pointer: '/signature', detail: opened.error }] }
  const checked = checkJob({ ...job, data: opened.data })
  if ('errors' in checked) return { ...facts, business: readBusinessId(opened.data), errors: checked.errors }
  const { business_id: business, ...request } = checked.data
  if (facts.json.length > largeLength) await nextTurn()
  return { ...facts, business, session: request.session_id ?? newSessionId(), request }
}

/** What `rejected_jobs` and `held_jobs` keep of a job and find it by. */
export const toJobFacts = (id: string, data: unknown): JobFacts => {
  const json = toJson(data)
  return { id: toStorableText(id), json, hash: sha256(json) }
}

/** The same of a job whose data is not parsed here. */
export const toUnparsedFacts = (id: string, text: string): JobFacts =>
  text.length > maxRequestBytes
    ? toJobFacts(id, tooLargeNote)
    : { id: toStorableText(id), json: text, hash: sha256(text) }

/** Keeps a job that cannot be admitted with its errors; once, however often it comes. `mayPass`: it does not stay refused. */
export const rejectJob = async (
  database: Database,
  job: JobFacts & { business: string | null },
  errors: FieldError[],
  mayPass = false,
): Promise<void> => {
  const insert = (data: string) =>
    database.query(
      `INSERT INTO rejected_jobs (tenant, job_id, data, faults, data_hash, may_pass)
       VALUES ((SELECT tenant FROM businesses WHERE tenant = $1), $2, $3::json, $4::json, $5, $6) ON CONFLICT DO NOTHING`,
      [job.business, job.id, data, JSON.stringify(errors), job.hash, mayPass],
    )
  await insert(job.json).catch((error: unknown) => {
    if (isDatabaseUnavailable(error)) throw error
    return insert(JSON.stringify('[this data cannot be stored]'))
  })
}

/** An error of a job as a whole. */
export const toJobErrors = (detail: string): FieldError[] => [{ pointer: '', detail }]

const checkJob = (job: IntakeJob): { data: z.infer<typeof jobSchema> } | { errors: FieldError[] } => {
  const jobError = findJobError(job)
  if (jobError) return { errors: toJobErrors(jobError) }
  const parsed = jobSchema.safeParse(job.data)
  return parsed.success ? parsed : { errors: toFieldErrors(parsed.error) }
}

/** The data of a job that an admin submits again, or its errors. */
export const checkJobData = (id: string, data: unknown): ReturnType<typeof checkJob> =>
  checkJob({ id, name: 'run', data })

const findJobError = ({ name, id, data }: IntakeJob): string | null => {
  if (name !== 'run') return `jobs are named "run", not "${name}"`
  if (id.includes('\u0000') || id.length > maxJobIdLength)
    return `job ids have at most ${maxJobIdLength} characters and no NUL`
  return nestsDeeper(data, maxDepth) ? `the data is nested deeper than ${maxDepth} levels` : null
}

/** Stops at `levels`: a deep value would overflow the stack of any other recursion. */
const nestsDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((item) => nestsDeeper(item, levels - 1)))

/** By its values and their texts, which are read without copying; what is deeper than it may be has an error of its own. */
const findExcess = (data: unknown): string | null => {
  let [chars, values] = [0, 0]
  const isOver = (value: unknown, levels: number): boolean => {
    values++
    if (typeof value === 'string') chars += value.length
    const isParent = typeof value === 'object' && value !== null && levels > 0
    const isFull = chars > maxRequestBytes || values > maxJsonValues
    return isFull || (isParent && Object.values(value).some((item) => isOver(item, levels - 1)))
  }
  if (!isOver(data, maxDepth)) return null
  return values > maxJsonValues
    ? `has more than ${maxJsonValues} values`
    : `is larger than ${maxRequestBytes} bytes; upload its files with POST /v1/files and name them by file_id`
}

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
