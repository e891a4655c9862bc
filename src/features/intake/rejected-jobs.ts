import type { z } from 'zod'
import type { Admission, AdmittedRun } from '../../engine/runs/admission.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { type PageRequest, readPage } from '../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../infra/database/row-times.ts'
import type { MasonError } from '../../state/errors.ts'
import { createInvalidRequest, type FieldError } from '../../state/resource-schema.ts'
import type { JobData } from '../../state/run-request.ts'
import type { Page } from '../../state/run-view.ts'
import { checkJobData } from './intake.ts'
import { openSignedJob } from './job-signatures.ts'
import type { rejectedJobDataSchema, rejectedJobSchema } from './rejected-job.ts'

type RejectedJob = z.infer<typeof rejectedJobSchema>
type RejectedJobData = z.infer<typeof rejectedJobDataSchema>

const columns =
  'rejected_id::text AS id, job_id, tenant AS business_id, faults AS errors, received_at, run_id'

/** Whose rows have no business. */
const noBusiness = '_none'

/**
 * The refused jobs of the public queue, of all businesses. `resubmit` admits one, with its own data or with corrected data,
 * under its job id as the idempotency key: repeated, it returns the same run. Null and false: there is no such job.
 */
export const createRejectedJobs = (
  database: Database,
  submit: (businessId: string, request: JobData, key: string) => Promise<Admission>,
) => {
  const find = async (id: string): Promise<RejectedJob | null> => {
    if (!/^\d{1,18}$/.test(id)) return null
    const row = await queryOne<Dated<RejectedJob>>(
      database,
      `SELECT ${columns} FROM rejected_jobs WHERE rejected_id = $1::bigint`,
      [id],
    )
    return row && toIsoTimes(row)
  }
  const get = async (id: string): Promise<RejectedJobData | null> => {
    const job = await find(id)
    if (!job) return null
    const row = await database.asBusiness(job.business_id ?? noBusiness, (sql) =>
      queryOne<Pick<RejectedJobData, 'data'>>(
        sql,
        'SELECT data FROM rejected_jobs WHERE rejected_id = $1::bigint',
        [id],
      ),
    )
    return row && { ...job, ...row }
  }
  return {
    get,
    list: (page: PageRequest): Promise<Page<RejectedJob>> =>
      readPage(
        database,
        {
          select: columns,
          from: 'rejected_jobs',
          at: 'received_at',
          id: 'rejected_id::text',
          storedBytes: 'pg_column_size(faults)',
        },
        page,
        toIsoTimes<Dated<RejectedJob>>,
      ),
    async resubmit(id: string, corrected: unknown): Promise<AdmittedRun | null> {
      const job = await get(id)
      if (!job) return null
      const { business_id, ...request } = readJobData(job, corrected)
      const { run } = await submit(business_id, request, job.job_id)
      await database.query('UPDATE rejected_jobs SET run_id = $2 WHERE rejected_id = $1', [id, run.id])
      return run
    },
    async remove(id: string): Promise<boolean> {
      if (!(await find(id))) return false
      await database.query('DELETE FROM rejected_jobs WHERE rejected_id = $1::bigint', [id])
      return true
    },
  }
}

/** An admin vouches for what a signature did not prove. Throws `invalid_request` with the errors of the data. */
const readJobData = (job: RejectedJobData, corrected: unknown) => {
  const opened = corrected === undefined ? openSignedJob(job.job_id, job.data, [], new Date()) : null
  if (opened && 'error' in opened) throw createInvalidError([{ pointer: '', detail: opened.error }])
  const checked = checkJobData(job.job_id, opened ? opened.data : corrected)
  if ('errors' in checked) throw createInvalidError(checked.errors)
  return checked.data
}

const createInvalidError = (errors: FieldError[]): MasonError =>
  createInvalidRequest(
    errors.map((one) => ({ ...one, pointer: `/data${one.pointer}` })),
    'send the corrected data of the job as `data`',
  )
