import { type Database, one } from '../database/database.ts'
import { forgetSession } from '../memory/store.ts'
import { releaseBlobs } from './blobs.ts'

/**
 * Deletes all of a session, whatever state its runs are in; their workers lose them. Files, results and memories that
 * other sessions have too stay.
 * False: there is no such session.
 */
export const deleteSession = (database: Database, tenant: string, sessionId: string): Promise<boolean> =>
  database.asBusiness(tenant, async (sql) => {
    const named = [tenant, sessionId]
    // the lock on the session keeps new turns out, those on its runs keep appends out, which then find no run any more
    if (
      !(await one(
        sql,
        'SELECT 1 AS there FROM sessions WHERE tenant = $1 AND session_id = $2 FOR UPDATE',
        named,
      ))
    )
      return false
    await sql.query(
      'SELECT 1 AS there FROM runs WHERE tenant = $1 AND session_id = $2 ORDER BY turn FOR UPDATE',
      named,
    )
    await forgetSession(sql, tenant, sessionId)
    await sql.query(
      'DELETE FROM outbox WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2)',
      named,
    )
    await sql.query('DELETE FROM actions WHERE tenant = $1 AND session_id = $2', named)
    await sql.query('DELETE FROM sessions WHERE tenant = $1 AND session_id = $2', named)
    await releaseBlobs(sql, tenant, sessionId)
    return true
  })
