import type { Fence } from '../../engine/runs/admission.ts'
import { toAdmitStatement } from '../../engine/runs/admission-statement.ts'
import { queryOne } from '../../infra/database/database.ts'
import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import type { Sql } from '../../state/ports/sql.ts'

/** For so long a leader that is silent keeps the intake. */
export const intakeLeaseMs = 3000

/**
 * A CTE `lease`, empty unless the leader of this epoch still holds its lease. It locks the row until the commit, so that the next
 * leader begins after the last admission of the one before.
 */
export const toLeaseSql = (epoch: string): string => `lease AS MATERIALIZED (
    SELECT epoch FROM intake_lease WHERE epoch = ${epoch}::bigint AND lease_until > clock_timestamp() FOR SHARE)`

/** The leader of this epoch may no longer admit jobs of the queue. */
export class LeaseLostError extends Error {
  constructor(epoch: number) {
    super(`the lease of intake epoch ${epoch} has ended`)
    this.name = 'LeaseLostError'
  }
}

/** Admits jobs of the queue, of which only the leader of this epoch admits any, and none of a session that has held ones ($4: before this one). */
const admitJobsStatement = toAdmitStatement({
  fence: `${toLeaseSql('$3')},`,
  leads: 'EXISTS (SELECT FROM lease)',
  behind: `EXISTS (SELECT FROM held_jobs h WHERE h.tenant = $1 AND h.session_id = f.session_id AND h.outcome IS NULL
      AND ($4::bigint IS NULL OR h.seq < $4::bigint))`,
})

/** How a leader admits jobs; `firstHeld`: the first of them in `held_jobs`, where they are there. */
export const createFence = (epoch: number, firstHeld: number | null): Fence => ({
  statement: admitJobsStatement,
  values: [epoch, firstHeld],
  createError: () => new LeaseLostError(epoch),
})

/** Errors that end the term of a leader: the next one does again what is not committed. */
export const endsTerm = (error: unknown): boolean =>
  isDatabaseUnavailable(error) || error instanceof LeaseLostError

const leaseEnd = (parameter: string): string =>
  `clock_timestamp() + ${parameter}::int * interval '1 millisecond'`

/** Makes this worker the leader of the intake; null while another one is. The epoch fences what it admits. */
export const acquireIntake = async (sql: Sql, workerId: string): Promise<number | null> => {
  const row = await queryOne<{ epoch: number }>(
    sql,
    `UPDATE intake_lease SET owner = $1, epoch = epoch + 1, lease_until = ${leaseEnd('$2')}
     WHERE lease_until <= clock_timestamp() RETURNING epoch`,
    [workerId, intakeLeaseMs],
  )
  return row?.epoch ?? null
}

/** Renews the lease for `ms`; 0 ends it at once. False: it had ended before. */
export const renewIntake = async (sql: Sql, epoch: number, ms = intakeLeaseMs): Promise<boolean> => {
  const row = await queryOne(
    sql,
    `UPDATE intake_lease SET lease_until = ${leaseEnd('$2')}
     WHERE epoch = $1 AND lease_until > clock_timestamp() RETURNING epoch`,
    [epoch, ms],
  )
  return row !== null
}
