import type { EarlierTalk } from '../../state/memory/earlier-talk.ts'
import type { Sql } from '../../state/ports.ts'
import type { Source } from './remember.ts'
import type { Who } from './scope.ts'

/** As many sessions are looked at, of which the index gives the latest. */
const most = 10

/**
 * What is written down of the user's other sessions of the last 30 days, the latest first. A fork that has not gone on
 * says what its origin says: neither is another talk to the other.
 */
export const readTalks = async (
  sql: Sql,
  { tenant, user_id }: Who,
  { session_id }: Pick<Source, 'session_id'>,
): Promise<EarlierTalk[]> => {
  const { rows } = await sql.query<EarlierTalk>(
    `SELECT session_id, summary, summary_turn, updated_at FROM (
       SELECT session_id, summary, summary_turn, updated_at FROM sessions WHERE tenant = $1 AND user_id = $2 AND session_id <> $3
       ORDER BY created_at DESC, session_id DESC LIMIT ${most}
     ) latest WHERE summary <> '' AND updated_at > clock_timestamp() - interval '30 days'
       AND summary IS DISTINCT FROM (SELECT summary FROM sessions WHERE tenant = $1 AND session_id = $3)
     ORDER BY updated_at DESC`,
    [tenant, user_id, session_id],
  )
  return rows
}
