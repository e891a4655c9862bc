import { buildRunFilter, type RunFilter } from '../../engine/runs/run-queries.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { type Dated, toIsoTimes } from '../../infra/database/row-times.ts'
import { newBulkJobId } from '../../infra/lib/ids.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError } from '../../state/resource-schema.ts'
import { openStatusesSql } from '../../state/run-status.ts'
import type { BulkAction, BulkJob } from './bulk-job.ts'

/** Runs that one job has at most. */
const maxRuns = 10_000
/** Refused runs that a job names. */
const maxRefusals = 100

/** Which runs an action is for, whatever the filter says. */
const fitsSql: Record<BulkAction, string> = {
  cancel: `r.status IN ${openStatusesSql}`,
  retry: `r.status = 'failed'`,
}

const readStatement = `
  SELECT j.job_id AS id, j.action, j.reason, j.status, j.created_at, j.confirmed_at, j.ended_at, n.count, n.done, n.refused,
    COALESCE((SELECT json_agg(json_build_object('run_id', x.run_id, 'code', x.code) ORDER BY x.position) FROM (
      SELECT run_id, code, position FROM bulk_runs WHERE tenant = $1 AND job_id = $2 AND status = 'refused'
      ORDER BY position LIMIT ${maxRefusals}) x), '[]') AS refusals
  FROM bulk_jobs j CROSS JOIN (
    SELECT count(*)::int AS count, count(*) FILTER (WHERE status = 'done')::int AS done,
      count(*) FILTER (WHERE status = 'refused')::int AS refused FROM bulk_runs WHERE tenant = $1 AND job_id = $2) n
  WHERE j.tenant = $1 AND j.job_id = $2`

const readJob = async (sql: Sql, businessId: string, id: string): Promise<BulkJob | null> => {
  const row = await queryOne<Dated<BulkJob>>(sql, readStatement, [businessId, id])
  return row && toIsoTimes(row)
}

/** A job that is to be: `token_id`: whose budget retries spend. */
export type BulkRequest = {
  action: BulkAction
  filter: Omit<RunFilter, 'limit' | 'cursor' | 'order' | 'edge'>
  reason?: string
  token_id?: string
}

/** Actions on many runs of a business. Null: there is no such job. */
export const createBulkJobs = (database: Database, businessId: string) => {
  const change = (id: string, statement: string): Promise<BulkJob | null> =>
    database.asBusiness(businessId, async (sql) => {
      await sql.query(statement, [businessId, id])
      return readJob(sql, businessId, id)
    })
  return {
    /** Makes the list of the runs there are now. Throws `invalid_request` for more than 10,000. */
    list: ({ action, filter, reason, token_id }: BulkRequest): Promise<BulkJob> =>
      database.asBusiness(businessId, async (sql) => {
        const id = newBulkJobId()
        await sql.query(
          'INSERT INTO bulk_jobs (tenant, job_id, action, reason, token_id) VALUES ($1, $2, $3, $4, $5)',
          [businessId, id, action, reason ?? null, token_id ?? null],
        )
        const { from, where, at, values } = buildRunFilter(businessId, filter)
        await sql.query(
          `INSERT INTO bulk_runs (tenant, job_id, run_id, position)
           SELECT $1, $${values.length + 1}, run_id, row_number() OVER (ORDER BY at, run_id) FROM (
             SELECT r.run_id, ${at} AS at FROM ${from} WHERE ${where} AND ${fitsSql[action]} LIMIT ${maxRuns + 1}) AS found`,
          [...values, id],
        )
        const job = (await readJob(sql, businessId, id)) as BulkJob
        if (job.count <= maxRuns) return job
        throw createFieldsError({
          pointer: '/filter',
          detail: `is of more than ${maxRuns} runs; narrow it, by from and to for example`,
        })
      }),
    get: (id: string): Promise<BulkJob | null> =>
      database.asBusiness(businessId, (sql) => readJob(sql, businessId, id)),
    /** Has workers go through the list; repeating it changes nothing. */
    confirm: (id: string): Promise<BulkJob | null> =>
      change(
        id,
        `UPDATE bulk_jobs SET status = 'queued', confirmed_at = clock_timestamp(), due_at = clock_timestamp()
         WHERE tenant = $1 AND job_id = $2 AND status = 'unconfirmed'`,
      ),
    /** What is done stays so. */
    cancel: (id: string): Promise<BulkJob | null> =>
      change(
        id,
        `UPDATE bulk_jobs SET status = 'cancelled', ended_at = clock_timestamp()
         WHERE tenant = $1 AND job_id = $2 AND status IN ('unconfirmed', 'queued', 'running')`,
      ),
  }
}

/** See `createBulkJobs`. */
export type BulkJobs = ReturnType<typeof createBulkJobs>
