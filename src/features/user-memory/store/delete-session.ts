import { deleteSessionWith } from '../../../engine/sessions/delete-session.ts'
import type { Database } from '../../../infra/database/database.ts'
import { unlearnProfile } from './learn-profile.ts'
import { forgetSessionMemories } from './memory-rows.ts'
import { lockUser } from './remember.ts'
import { clearLeakingTexts } from './session-summaries.ts'

/**
 * Deletes everything of a session, whatever state its runs are in; their workers lose them. Files, results, memories and
 * profile fields that other sessions have too stay; summaries of other sessions that repeat deleted facts are cleared.
 * False: there is no such session.
 */
export const deleteSession = (database: Database, business: string, sessionId: string): Promise<boolean> =>
  deleteSessionWith(
    {
      lock: (sql, user_id) => lockUser(sql, { business, user_id }),
      async forget(sql, user_id, deletedSession) {
        const user = { business, user_id }
        const memories = await forgetSessionMemories(sql, business, sessionId)
        const profileValues = await unlearnProfile(sql, user, ({ session_id }) => session_id === sessionId)
        await clearLeakingTexts(sql, user, { memories, profileValues, taughtBy: [], deletedSession })
      },
    },
    database,
    business,
    sessionId,
  )
