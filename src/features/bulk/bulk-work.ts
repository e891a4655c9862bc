import type { BusinessRuns } from '../../engine/runs/business-runs.ts'
import { type Database, hasRow, queryOne } from '../../infra/database/database.ts'
import { isMasonError, passesSoon, toMasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import type { BulkAction } from './bulk-job.ts'

/** A job as a worker has it; `claims` is the fence of its writes. */
export type BulkClaim = {
  tenant: string
  job_id: string
  action: BulkAction
  reason: string | null
  token_id: string | null
  claims: number
}

/** Runs that are worked on at once. */
const batchSize = 8
/** When a job goes on that a quota, a budget or the database holds up. */
const retryMs = 10_000

const dueSql = `FROM bulk_jobs WHERE status IN ('queued', 'running') AND due_at <= clock_timestamp() ORDER BY due_at LIMIT 1`
// materialized, or a join may ask for the oldest again at each row, and claim all of them
const claimStatement = `
  WITH pick AS MATERIALIZED (SELECT tenant, job_id ${dueSql} FOR UPDATE SKIP LOCKED)
  UPDATE bulk_jobs j SET status = 'running', claims = claims + 1, due_at = clock_timestamp() + $1::int * interval '1 millisecond'
  FROM pick WHERE j.tenant = pick.tenant AND j.job_id = pick.job_id
  RETURNING j.tenant, j.job_id, j.action, j.reason, j.token_id, j.claims`

const ownSql = `WHERE tenant = $1 AND job_id = $2 AND claims = $3 AND status = 'running'`
const renewStatement = `UPDATE bulk_jobs SET due_at = clock_timestamp() + $4::int * interval '1 millisecond' ${ownSql} RETURNING job_id`
const endStatement = `UPDATE bulk_jobs SET status = 'completed', ended_at = clock_timestamp() ${ownSql}`
const leftStatement = `
  SELECT run_id FROM bulk_runs WHERE tenant = $1 AND job_id = $2 AND status IS NULL ORDER BY position LIMIT ${batchSize}`
const recordStatement = `
  UPDATE bulk_runs SET status = $4, code = $5 WHERE tenant = $1 AND job_id = $2 AND run_id = $3 AND status IS NULL`

type BulkWorkParts = {
  database: Pick<Database, 'query'>
  log: Log
  leaseMs: number
  /** Does the action to one run. It must be safe to repeat: a worker may be killed before it could write down that it is done. */
  act(job: BulkClaim, runId: string): Promise<unknown>
}

/** Goes through confirmed lists of runs, one job at a time in a process. */
export const createBulkWork = ({ database, log, leaseMs, act }: BulkWorkParts) => {
  let closing = false

  /** False: it has to wait. */
  const actOnce = async (job: BulkClaim, runId: string): Promise<boolean> => {
    let code: string | null = null
    try {
      await act(job, runId)
    } catch (error) {
      if (isMasonError(error, 'too_many_requests', 'database_unavailable') || passesSoon(error)) return false
      code = toMasonError(error).code
      if (code === 'internal') log.warn({ run_id: runId, error: String(error) }, 'a run of a bulk job failed')
    }
    const status = code === null ? 'done' : 'refused'
    await database.query(recordStatement, [job.tenant, job.job_id, runId, status, code])
    return true
  }

  const workOn = async (job: BulkClaim): Promise<void> => {
    const own = [job.tenant, job.job_id, job.claims]
    const renew = (ms: number): Promise<boolean> => hasRow(database, renewStatement, [...own, ms])
    while (!closing) {
      const { rows } = await database.query<{ run_id: string }>(leftStatement, own.slice(0, 2))
      if (rows.length === 0) return void (await database.query(endStatement, own))
      // cancelled, or another worker has it
      if (!(await renew(leaseMs))) return
      const acted = await Promise.all(rows.map(({ run_id }) => actOnce(job, run_id)))
      if (acted.includes(false)) return void (await renew(retryMs))
    }
    await renew(0)
  }

  return {
    /** Works on the jobs that are due, until there is none. */
    async run(): Promise<void> {
      while (!closing) {
        const isDue = await hasRow(database, `SELECT 1 ${dueSql}`, [])
        const job = isDue && (await queryOne<BulkClaim>(database, claimStatement, [leaseMs]))
        if (!job) return
        await workOn(job)
      }
    },
    /** Hands its job to other workers after the runs that are in progress. */
    stop(): void {
      closing = true
    },
  }
}

/** See `createBulkWork`. */
export type BulkWork = ReturnType<typeof createBulkWork>

/** Does the action of a bulk job to one run. The key of a retry is that of job and run, so it can only exist once. */
export const actInBulk = (
  runs: Pick<BusinessRuns, 'cancel' | 'retry'>,
  { job_id, action, reason, token_id }: BulkClaim,
  runId: string,
): Promise<unknown> => {
  if (action === 'cancel') return runs.cancel(runId, reason ?? undefined)
  const entry = {
    by: 'http' as const,
    route: '/v1/runs/bulk',
    beganAtMs: Date.now(),
    traceparent: undefined,
    token_id: token_id ?? undefined,
  }
  return runs.retry(runId, `${job_id}:${runId}`, entry)
}
