import type { Sql } from '../../state/ports/sql.ts'

/** What a session was about once its turn had ended. `summary`: what it had before, or nothing is written. */
export type LearnedSummary = { session_id: string; turn: number; summary: string; learned: string }

/** Writes the summaries of sessions of a business, where no later turn has one. */
export const writeSessionSummaries = async (
  sql: Sql,
  businessId: string,
  summaries: readonly LearnedSummary[],
): Promise<void> => {
  if (summaries.length === 0) return
  await sql.query(
    `UPDATE sessions s SET summary = l.learned, summary_turn = l.turn
     FROM json_to_recordset($2::json) AS l(session_id text, turn int, summary text, learned text)
     WHERE l.turn % 1 = 0 AND s.tenant = $1 AND s.session_id = l.session_id AND s.summary_turn < l.turn AND s.summary = l.summary`,
    [businessId, JSON.stringify(summaries)],
  )
}

/** Clears the summaries of some sessions of a user, or with null of all, inside a transaction of the business. */
export const clearSessionSummaries = (
  sql: Sql,
  businessId: string,
  userId: string,
  sessions: readonly string[] | null,
): Promise<unknown> =>
  sql.query(
    `UPDATE sessions SET summary = '' WHERE tenant = $1 AND session_id IN (
       SELECT session_id FROM sessions WHERE tenant = $1 AND user_id = $2 AND summary <> ''
         AND ($3::json IS NULL OR session_id IN (SELECT json_array_elements_text($3::json)))
       ORDER BY session_id FOR NO KEY UPDATE)`,
    [businessId, userId, sessions && JSON.stringify(sessions)],
  )
