import { type Database, one } from '../database/database.ts'
import { unlearnSession } from '../memory/learn-profile.ts'
import { lockUser } from '../memory/remember.ts'
import { forgetSession } from '../memory/store.ts'
import { clearRetold } from '../memory/summaries.ts'
import { releaseBlobs } from './blobs.ts'

/**
 * Deletes all of a session, whatever state its runs are in; their workers lose them. Files, results, memories and fields
 * of the profile that other sessions have too stay; summaries of other sessions that tell what goes are cleared.
 * False: there is no such session.
 */
export const deleteSession = (database: Database, tenant: string, sessionId: string): Promise<boolean> =>
  database.asBusiness(tenant, async (sql) => {
    const named = [tenant, sessionId]
    const owner = await one<{ user_id: string }>(
      sql,
      'SELECT user_id FROM sessions WHERE tenant = $1 AND session_id = $2',
      named,
    )
    if (!owner) return false
    const who = { tenant, ...owner }
    await lockUser(sql, who)
    // the lock on the session keeps new turns out, those on its runs keep appends out, which then find no run any more
    const talk = await one<{ session_id: string; summary: string }>(
      sql,
      'SELECT session_id, summary FROM sessions WHERE tenant = $1 AND session_id = $2 AND user_id = $3 FOR UPDATE',
      [...named, who.user_id],
    )
    // another one of this name has begun meanwhile
    if (!talk) return false
    await sql.query(
      'SELECT 1 AS there FROM runs WHERE tenant = $1 AND session_id = $2 ORDER BY turn FOR UPDATE',
      named,
    )
    const memories = await forgetSession(sql, tenant, sessionId)
    const values = await unlearnSession(sql, who, sessionId)
    await clearRetold(sql, who, { memories, values, taughtBy: [], talk })
    await sql.query(
      'DELETE FROM outbox WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2)',
      named,
    )
    await sql.query('DELETE FROM actions WHERE tenant = $1 AND session_id = $2', named)
    await sql.query('DELETE FROM sessions WHERE tenant = $1 AND session_id = $2', named)
    await releaseBlobs(sql, tenant, sessionId)
    return true
  })
