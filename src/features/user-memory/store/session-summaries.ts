import { clearSessionSummaries } from '../../../engine/sessions/summaries.ts'
import { groupBy } from '../../../infra/lib/group-by.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import {
  type ForgottenContent,
  findLeakingSessions,
  listForgottenWords,
  mayLeak,
  repeatsMemory,
  type SessionSummary,
} from '../policy/summary-leaks.ts'
import { readRecalledIds } from './recalled-memories.ts'
import { cutOffTurns, deleteTurns, readSessionTurns, readTurnsWithWords } from './turns.ts'
import type { MemoryOwner } from './user-scope.ts'

/**
 * Clears the summaries of a user's sessions that repeat forgotten content, and deletes their turns that have a word of it, with
 * any other turn that has half of the words of a forgotten memory. `taughtBy`: the runs that taught it. Inside a transaction
 * of the business that holds the user's lock.
 */
export const clearLeakingTexts = async (
  sql: Sql,
  owner: MemoryOwner,
  { taughtBy, ...rest }: Omit<ForgottenContent, 'teachingSessions'> & { taughtBy: readonly string[] },
): Promise<void> => {
  const { rows } = await sql.query<Omit<SessionSummary, 'recalledIds'>>(
    `SELECT session_id, summary FROM sessions WHERE tenant = $1 AND user_id = $2 AND summary <> ''`,
    [owner.business, owner.user_id],
  )
  // a turn that is not stored yet may repeat it too
  await cutOffTurns(sql, owner)
  const deletedTurns = rest.deletedSession
    ? await readSessionTurns(sql, owner, rest.deletedSession.session_id)
    : []
  const deletedSession = rest.deletedSession && {
    ...rest.deletedSession,
    summary: [rest.deletedSession.summary, ...deletedTurns].join('\n'),
  }
  const content = { ...rest, ...(deletedSession && { deletedSession }) }
  const turns = await readTurnsWithWords(sql, owner, listForgottenWords(content))
  if (rows.length === 0 && turns.length === 0) return
  const forgotten = { ...content, teachingSessions: await findSessionsOfRuns(sql, owner, taughtBy) }
  const entries = [...rows.map(({ session_id, summary }) => ({ session_id, content: summary })), ...turns]
  const texts = [...groupBy(entries, ({ session_id }) => session_id)].map(([session_id, of]) => ({
    session_id,
    summary: of.map((one) => one.content).join('\n'),
  }))
  // only the log says what a session recalled: it is read only for texts that may leak
  const mayRepeat = texts.filter((one) => mayLeak(one, forgotten)).map(({ session_id }) => session_id)
  const recalled = await readRecalledIds(sql, owner, mayRepeat)
  const summaries = texts.map((one) => ({ ...one, recalledIds: recalled.get(one.session_id) ?? [] }))
  const leaking = new Set(findLeakingSessions(summaries, forgotten))
  await clearSessionSummaries(sql, owner.business, owner.user_id, [...leaking])
  const contents = forgotten.memories.map((memory) => memory.content)
  const repeating = turns
    .filter(({ session_id, content }) => leaking.has(session_id) || repeatsMemory(content, contents))
    .map(({ number }) => number)
  if (repeating.length > 0) await deleteTurns(sql, owner, repeating)
}

/** The sessions with one of these runs, or with a copy of it: a fork has the summary too. */
const findSessionsOfRuns = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  runIds: readonly string[],
): Promise<string[]> => {
  if (runIds.length === 0) return []
  const { rows } = await sql.query<{ session_id: string }>(
    `WITH RECURSIVE teaching AS (
       SELECT run_id, session_id FROM runs WHERE tenant = $1 AND run_id IN (SELECT json_array_elements_text($3::json))
       UNION SELECT r.run_id, r.session_id FROM teaching JOIN sessions s ON s.tenant = $1 AND s.user_id = $2
         JOIN runs r ON r.tenant = $1 AND r.session_id = s.session_id AND r.parent_run_id = teaching.run_id
     ) SELECT DISTINCT session_id FROM teaching`,
    [business, user_id, JSON.stringify(runIds)],
  )
  return rows.map(({ session_id }) => session_id)
}
