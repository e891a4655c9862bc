import { queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
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

/**
 * Stores an ended turn to be found by later sessions, by its words at once and by its vector once a model has embedded it
 * (`embed-turns.ts`). A short turn goes into the row of the turn before it. Inside a transaction of the user that holds their
 * lock and the session; safe to repeat. Returns its text; empty: nothing to be found by.
 */
export const writeTurn = async (
  sql: Sql,
  owner: MemoryOwner,
  { session_id, turn, prompt, answer, said_at }: TurnRecord,
): Promise<string> => {
  const text = toTurnText(prompt, answer)
  if (!text) return ''
  const { business, user_id } = owner
  const before = await queryOne<{ number: string; turn: number; last_turn: number; content: string }>(
    sql,
    `SELECT number, turn, last_turn, content FROM turns WHERE tenant = $1 AND session_id = $2 AND turn <= $3 ORDER BY turn DESC LIMIT 1`,
    [business, session_id, turn],
  )
  if (before && before.last_turn >= turn) return text.content
  if (text.isShort && before && before.content.length < maxChars) {
    const content = `${before.content}\n${text.content}`
    const words = JSON.stringify(listContentWords(content))
    await sql.query(
      `UPDATE turns SET content = $3, last_turn = $4, space = '', signature = NULL,
         words = array_to_tsvector(ARRAY(SELECT json_array_elements_text($5::json))) WHERE tenant = $1 AND number = $2`,
      [business, before.number, content, turn, words],
    )
    await sql.query('DELETE FROM turn_vectors WHERE tenant = $1 AND number = $2', [business, before.number])
    return text.content
  }
  await sql.query(
    `INSERT INTO turns (tenant, session_id, turn, last_turn, user_id, content, words, said_at)
     VALUES ($1, $2, $3, $3, $4, $5, array_to_tsvector(ARRAY(SELECT json_array_elements_text($6::json))), $7)`,
    [business, session_id, turn, user_id, text.content, JSON.stringify(text.words), said_at.toISOString()],
  )
  return text.content
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
       SELECT w.number FROM json_array_elements_text($3::json) AS asked JOIN turn_words w
         ON w.tenant = $1 AND w.user_id = $2 AND w.word = hashtextextended(asked, 0)) ORDER BY number`,
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
  const { rows } = await sql.query<{ content: string }>(
    'SELECT content FROM turns WHERE tenant = $1 AND session_id = $2 ORDER BY turn',
    [business, sessionId],
  )
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
