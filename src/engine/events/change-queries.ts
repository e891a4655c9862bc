import { queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { toPublicStatusSql } from '../../state/run-status.ts'
import type { RunStatus } from '../../state/run-view.ts'

/** A run with a new status; `position`: the transaction that changed it. */
export type ChangedRun = { position: number; run_id: string; session_id: string; status: RunStatus; at: Date }

/** Transactions below this have ended: what they wrote is visible, and they write no more. */
const endedSql = 'pg_snapshot_xmin(pg_current_snapshot())'
const toPosition = (xid: string): string => `(${xid})::text::int8`

/**
 * Where a stream begins: at `after`, or now where it is null. `reset`: what happened since `after` is not known any more, for rows
 * are kept for a day, and a database that was restored counts anew.
 */
export const startChanges = async (
  sql: Sql,
  businessId: string,
  after: number | null,
): Promise<{ position: number; reset: boolean }> => {
  const row = await queryOne<{ ended: number; oldest: number | null }>(
    sql,
    `SELECT ${toPosition(endedSql)} AS ended,
       (SELECT ${toPosition('xid')} FROM run_changes WHERE tenant = $1 ORDER BY xid LIMIT 1) AS oldest`,
    [businessId],
  )
  const now = Number(row?.ended ?? 1) - 1
  if (after === null) return { position: now, reset: false }
  const isKnown = after <= now && row?.oldest != null && Number(row.oldest) <= after
  return isKnown ? { position: after, reset: false } : { position: now, reset: true }
}

/** The next changes after a position, those of a transaction together. */
export const readChanges = async (sql: Sql, businessId: string, after: number): Promise<ChangedRun[]> => {
  const { rows } = await sql.query<ChangedRun>(
    `SELECT ${toPosition('xid')} AS position, run_id, session_id, ${toPublicStatusSql('status')} AS status, at FROM run_changes
     WHERE tenant = $1 AND xid > $2::text::xid8 AND xid < ${endedSql} ORDER BY xid FETCH FIRST 500 ROWS WITH TIES`,
    [businessId, String(after)],
  )
  return rows.map((row) => ({ ...row, position: Number(row.position) }))
}
