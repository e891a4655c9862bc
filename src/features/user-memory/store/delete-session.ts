import { deleteSessionRows, lockSession } from '../../../engine/sessions/delete-session.ts'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import { unlearnProfile } from './learn-profile.ts'
import { forgetSessionMemories } from './memory-rows.ts'
import { lockUser } from './remember.ts'
import { clearLeakingTexts } from './session-summaries.ts'

/**
 * Deletes everything of a session, whatever state its runs are in; their workers lose them. Files, results, memories and
 * profile fields that other sessions have too stay; summaries of other sessions that repeat deleted facts are cleared.
 * False: there is no such session.
 */
export const deleteSession = (database: Database, businessId: string, sessionId: string): Promise<boolean> =>
  database.asBusiness(businessId, async (sql) => {
    const owner = await queryOne<{ user_id: string }>(
      sql,
      'SELECT user_id FROM sessions WHERE tenant = $1 AND session_id = $2',
      [businessId, sessionId],
    )
    if (!owner) return false
    const user = { business: businessId, ...owner }
    await lockUser(sql, user)
    const deletedSession = await lockSession(sql, businessId, sessionId, user.user_id)
    // meanwhile another session was created under this id
    if (!deletedSession) return false
    const memories = await forgetSessionMemories(sql, businessId, sessionId)
    const profileValues = await unlearnProfile(sql, user, ({ session_id }) => session_id === sessionId)
    await clearLeakingTexts(sql, user, { memories, profileValues, taughtBy: [], deletedSession })
    await deleteSessionRows(sql, businessId, sessionId)
    return true
  })
