import { releaseSessionBlobs } from '../../infra/blobs/blobs.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { unlearnProfile } from '../../memory/store/learn-profile.ts'
import { forgetSessionMemories } from '../../memory/store/memory-rows.ts'
import { lockUser } from '../../memory/store/remember.ts'
import { clearLeakingTexts } from '../../memory/store/session-summaries.ts'
import { endHeldJobs } from '../runs/held-jobs.ts'

/**
 * Deletes everything of a session, whatever state its runs are in; their workers lose them. Files, results, memories and
 * profile fields that other sessions have too stay; summaries of other sessions that repeat deleted facts are cleared.
 * False: there is no such session.
 */
export const deleteSession = (database: Database, businessId: string, sessionId: string): Promise<boolean> =>
  database.asBusiness(businessId, async (sql) => {
    const key = [businessId, sessionId]
    const owner = await queryOne<{ user_id: string }>(
      sql,
      'SELECT user_id FROM sessions WHERE tenant = $1 AND session_id = $2',
      key,
    )
    if (!owner) return false
    const user = { business: businessId, ...owner }
    await lockUser(sql, user)
    // the lock on the session stops new turns, those on its runs stop appends, which then find no run
    const deletedSession = await queryOne<{ session_id: string; summary: string }>(
      sql,
      'SELECT session_id, summary FROM sessions WHERE tenant = $1 AND session_id = $2 AND user_id = $3 FOR UPDATE',
      [...key, user.user_id],
    )
    // meanwhile another session was created under this id
    if (!deletedSession) return false
    await sql.query(
      'SELECT 1 AS there FROM runs WHERE tenant = $1 AND session_id = $2 ORDER BY turn FOR UPDATE',
      key,
    )
    const memories = await forgetSessionMemories(sql, businessId, sessionId)
    const profileValues = await unlearnProfile(sql, user, ({ session_id }) => session_id === sessionId)
    await clearLeakingTexts(sql, user, { memories, profileValues, taughtBy: [], deletedSession })
    await sql.query(
      'DELETE FROM outbox WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2)',
      key,
    )
    await sql.query('DELETE FROM actions WHERE tenant = $1 AND session_id = $2', key)
    await sql.query('DELETE FROM sessions WHERE tenant = $1 AND session_id = $2', key)
    await endHeldJobs(sql, businessId, sessionId)
    await releaseSessionBlobs(sql, businessId, sessionId)
    return true
  })
