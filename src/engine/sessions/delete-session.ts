import { releaseSessionBlobs } from '../../files/blobs/blobs.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'

type LockedSession = { session_id: string; summary: string }
/** What is done with the memory of a session's user: `lock` before the session is locked, `forget` before its rows go. */
type SessionMemory = {
  lock(sql: Sql, userId: string): Promise<unknown>
  forget(sql: Sql, userId: string, session: LockedSession): Promise<unknown>
}

/** Deletes everything of a session, whatever state its runs are in; their workers lose them. False: there is no such session. */
export const deleteSessionWith = (
  memory: SessionMemory | null,
  database: Database,
  businessId: string,
  sessionId: string,
): Promise<boolean> =>
  database.asBusiness(businessId, async (sql) => {
    const key = [businessId, sessionId]
    const owner = await queryOne<{ user_id: string }>(
      sql,
      'SELECT user_id FROM sessions WHERE tenant = $1 AND session_id = $2',
      key,
    )
    if (!owner) return false
    await memory?.lock(sql, owner.user_id)
    // stops new turns; of another user where the session was deleted meanwhile and another one has its id
    const session = await queryOne<LockedSession>(
      sql,
      'SELECT session_id, summary FROM sessions WHERE tenant = $1 AND session_id = $2 AND user_id = $3 FOR UPDATE',
      [...key, owner.user_id],
    )
    if (!session) return false
    // stops appends, which then find no run
    await sql.query(
      'SELECT 1 AS there FROM runs WHERE tenant = $1 AND session_id = $2 ORDER BY turn FOR UPDATE',
      key,
    )
    await memory?.forget(sql, owner.user_id, session)
    await sql.query(
      'DELETE FROM outbox WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND session_id = $2)',
      key,
    )
    await sql.query('DELETE FROM actions WHERE tenant = $1 AND session_id = $2', key)
    await sql.query('DELETE FROM sessions WHERE tenant = $1 AND session_id = $2', key)
    await releaseSessionBlobs(sql, businessId, sessionId)
    return true
  })
