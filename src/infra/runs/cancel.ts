import { MasonError } from '../../state/errors.ts'
import { type Database, one } from '../database/database.ts'
import { type Settled, settleRun } from './settle.ts'

/**
 * Asks for a run to be cancelled. Queued and waiting runs are settled at once; a running one is told so by its row,
 * which its worker reads every second. Throws `not_found`, and `run_ended` for completed or failed runs.
 */
export const cancelRun = (
  database: Database,
  tenant: string,
  runId: string,
  reason: string,
): Promise<Settled | null> =>
  database.asBusiness(tenant, async (sql) => {
    const run = await one<{ status: string }>(
      sql,
      `UPDATE runs SET cancel_requested_at = COALESCE(cancel_requested_at, clock_timestamp()),
         cancel_reason = COALESCE(cancel_reason, $3::json)
       WHERE tenant = $1 AND run_id = $2 AND status IN ('queued', 'running', 'input_required') RETURNING status`,
      [tenant, runId, JSON.stringify(reason)],
    )
    if (run)
      return run.status === 'running' ? null : settleRun(sql, tenant, runId, { status: 'cancelled', reason })
    const ended = await one<{ status: string }>(
      sql,
      'SELECT status FROM runs WHERE tenant = $1 AND run_id = $2',
      [tenant, runId],
    )
    if (!ended) throw new MasonError('not_found', `there is no run "${runId}"`)
    if (ended.status !== 'cancelled')
      throw new MasonError('run_ended', `run "${runId}" has ${ended.status} and cannot be cancelled any more`)
    return null
  })
