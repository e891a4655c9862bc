import { releaseSessionBlobs } from '../../files/blobs/blobs.ts'
import { queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { endHeldJobs } from '../runs/held-jobs.ts'

/**
 * Locks a session of a user for its deletion, and returns its summary; null: there is none. The lock on the session stops new
 * turns, those on its runs stop appends, which then find no run.
 */
export const lockSession = async (sql: Sql, businessId: string, sessionId: string, userId: string) => {
  const session = await queryOne<{ session_id: string; summary: string }>(
    sql,
    'SELECT session_id, summary FROM sessions WHERE tenant = $1 AND session_id = $2 AND user_id = $3 FOR UPDATE',
    [businessId, sessionId, userId],
  )
  if (session)
    await sql.query(
      'SELECT 1 AS there FROM runs WHERE tenant = $1 AND session_id = $2 ORDER BY turn FOR UPDATE',
      [businessId, sessionId],
    )
  return session
}

/** Deletes the rows of a locked session, of its runs and held jobs, and releases its blobs. */
export const deleteSessionRows = async (sql: Sql, businessId: string, sessionId: string): Promise<void> => {
  const key = [businessId, sessionId]
  await sql.query(
    'DELETE FROM outbox WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2)',
    key,
  )
  await sql.query('DELETE FROM actions WHERE tenant = $1 AND session_id = $2', key)
  await sql.query('DELETE FROM sessions WHERE tenant = $1 AND session_id = $2', key)
  await endHeldJobs(sql, businessId, sessionId)
  await releaseSessionBlobs(sql, businessId, sessionId)
}
