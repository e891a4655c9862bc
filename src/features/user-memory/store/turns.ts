import { toStoredText } from '../../../infra/lib/json-text.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { listContentWords, toTurnText } from '../policy/turn-text.ts'
import type { MemoryOwner } from './user-scope.ts'

/** An ended turn of a session. */
export type TurnRecord = {
  session_id: string
  turn: number
  prompt: string
  answer: string | null
  said_at: Date
}

/** Characters of a row that short turns are added to. */
const maxChars = 4000

type LatestTurn = { session_id: string; number: string; last_turn: number; content: string }

const latestStatement = `
  SELECT t.* FROM json_to_recordset($2::json) AS l(session_id text, turn int) CROSS JOIN LATERAL (
    SELECT session_id, number, last_turn, content FROM turns
    WHERE tenant = $1 AND session_id = l.session_id AND turn <= l.turn ORDER BY turn DESC LIMIT 1
  ) t`

/**
 * Stores ended turns, at most one of a session, to be found by later sessions, by their words at once and by their vectors once a
 * model has embedded them (`embed-turns.ts`). A short turn goes into the row of the turn before it. Inside a transaction of the
 * user that holds their lock and the sessions; safe to repeat. Returns their texts, without those that have nothing to be found by.
 */
export const writeTurns = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  records: readonly TurnRecord[],
): Promise<string[]> => {
  const turns = records.flatMap(({ session_id, turn, prompt, answer, said_at }) => {
    const text = toTurnText(prompt, answer)
    return text ? [{ session_id, turn, said_at, ...text, content: toStoredText(text.content) }] : []
  })
  if (turns.length === 0) return []
  const keys = turns.map(({ session_id, turn }) => ({ session_id, turn }))
  const { rows } = await sql.query<LatestTurn>(latestStatement, [business, JSON.stringify(keys)])
  const latest = new Map(rows.map((row) => [row.session_id, row]))
  const added: typeof turns = []
  for (const one of turns) {
    const before = latest.get(one.session_id)
    if (before && before.last_turn >= one.turn) continue
    if (before && one.isShort && before.content.length < maxChars)
      await extendTurn(sql, business, before, one)
    else added.push(one)
  }
  if (added.length > 0)
    await sql.query(
      `INSERT INTO turns (tenant, session_id, turn, last_turn, user_id, content, words, said_at)
       SELECT $1, l.session_id, l.turn, l.turn, $2, l.content, array_to_tsvector(ARRAY(SELECT json_array_elements_text(l.words))), l.said_at
       FROM json_to_recordset($3::json) AS l(session_id text, turn int, content text, words json, said_at timestamptz)`,
      [business, user_id, JSON.stringify(added)],
    )
  return turns.map(({ content }) => content)
}

const extendTurn = async (
  sql: Sql,
  business: string,
  before: LatestTurn,
  { turn, content }: { turn: number; content: string },
): Promise<void> => {
  const extended = `${before.content}\n${content}`
  await sql.query(
    `UPDATE turns SET content = $3, last_turn = $4, space = '', signature = NULL,
       words = array_to_tsvector(ARRAY(SELECT json_array_elements_text($5::json))) WHERE tenant = $1 AND number = $2`,
    [business, before.number, extended, turn, JSON.stringify(listContentWords(extended))],
  )
  await sql.query('DELETE FROM turn_vectors WHERE tenant = $1 AND number = $2', [business, before.number])
}

/** From here on no turn that the user has ended so far is read from its run; turns that are stored stay. */
export const cutOffTurns = (sql: Sql, { business, user_id }: MemoryOwner): Promise<unknown> =>
  sql.query(
    `INSERT INTO turn_cutoffs (tenant, user_id) VALUES ($1, $2)
     ON CONFLICT (tenant, user_id) DO UPDATE SET said_before = excluded.said_before`,
    [business, user_id],
  )

/** The turns of a user that have one of these words. */
export const readTurnsWithWords = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  words: readonly string[],
): Promise<{ number: string; session_id: string; content: string }[]> => {
  if (words.length === 0) return []
  const { rows } = await sql.query<{ number: string; session_id: string; content: string }>(
    `SELECT number, session_id, content FROM turns WHERE tenant = $1 AND number IN (
       SELECT w.number FROM json_array_elements_text($3::json) AS asked
         CROSS JOIN LATERAL (SELECT number FROM turn_words WHERE tenant = $1 AND user_id = $2 AND word = hashtextextended(asked, 0) OFFSET 0) w) ORDER BY number`,
    [business, user_id, JSON.stringify(words)],
  )
  return rows
}

/** What the turns of a session say. */
export const readSessionTurns = async (
  sql: Sql,
  { business }: MemoryOwner,
  sessionId: string,
): Promise<string[]> => {
  const statement = 'SELECT content FROM turns WHERE tenant = $1 AND session_id = $2 ORDER BY turn'
  const { rows } = await sql.query<{ content: string }>(statement, [business, sessionId])
  return rows.map(({ content }) => content)
}

/** Deletes turns by their numbers, or with null all of a user. */
export const deleteTurns = (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  numbers: readonly string[] | null,
): Promise<unknown> =>
  sql.query(
    `DELETE FROM turns WHERE tenant = $1 AND user_id = $2
       AND ($3::json IS NULL OR number IN (SELECT json_array_elements_text($3::json)::bigint))`,
    [business, user_id, numbers && JSON.stringify(numbers)],
  )
