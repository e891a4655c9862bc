import { type Database, one } from '../database/database.ts'
import { dropDistillations } from '../memory/distil-queue.ts'
import { unlearnSession } from '../memory/learn-profile.ts'
import { forgetSession } from '../memory/store.ts'
import { releaseBlobs } from './blobs.ts'

/**
 * Deletes all of a session, whatever state its runs are in; their workers lose them. Files, results, memories and fields
 * of the profile that other sessions have too stay.
 * False: there is no such session.
 */
export const deleteSession = (database: Database, tenant: string, sessionId: string): Promise<boolean> =>
  database.asBusiness(tenant, async (sql) => {
    const named = [tenant, sessionId]
    // the lock on the session keeps new turns out, those on its runs keep appends out, which then find no run any more
    const owner = await one<{ user_id: string }>(
      sql,
      'SELECT user_id FROM sessions WHERE tenant = $1 AND session_id = $2 FOR UPDATE',
      named,
    )
    if (!owner) return false
    await sql.query(
      'SELECT 1 AS there FROM runs WHERE tenant = $1 AND session_id = $2 ORDER BY turn FOR UPDATE',
      named,
    )
    await dropDistillations(sql, tenant, 'session_id', sessionId)
    // takes the user's lock
    await forgetSession(sql, tenant, sessionId)
    await unlearnSession(sql, { tenant, ...owner }, sessionId)
    await sql.query(
      'DELETE FROM outbox WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2)',
      named,
    )
    await sql.query('DELETE FROM actions WHERE tenant = $1 AND session_id = $2', named)
    await sql.query('DELETE FROM sessions WHERE tenant = $1 AND session_id = $2', named)
    await releaseBlobs(sql, tenant, sessionId)
    return true
  })
