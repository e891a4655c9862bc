import type { ModelCaller } from '../../../models/ports/model-ports.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { type AskedTime, findAskedTime } from '../policy/asked-dates.ts'
import { hashSpace } from '../policy/hash-embedding.ts'
import { mergeByRank } from '../policy/rank-fusion.ts'
import { listContentWords } from '../policy/turn-text.ts'
import {
  embedQuery,
  type MemoryQuery,
  type MemoryServices,
  readSpaces,
  toNearStatement,
  toTsQuery,
  toVectorText,
  type VectorIndex,
} from './search.ts'
import { type MemoryOwner, sendAsUser } from './user-scope.ts'
import { computeSignature } from './vector-signature.ts'

/** An ended turn of another session. */
type TurnRow = { session_id: string; turn: number; content: string; said_at: Date }
/** A turn that a search returned; `relevance` from 0 to 1. */
export type TurnHit = TurnRow & { relevance: number }

const maxTurns = 5
const maxTurnsOfSession = 2
const listLength = 40
const columns = 'session_id, turn, content, said_at'

/** The turns that are searched. */
export const turnIndex: VectorIndex = {
  rows: 'turns',
  vectors: 'turn_vectors',
  id: 'number',
  where: 'AND session_id <> $7',
  live: 'true',
  columns: ['session_id', 'turn', 'content', 'said_at'].map((name) => `turns.${name}`).join(', '),
}
const nearStatement = toNearStatement(turnIndex)
/** Apart: with limits that it does not know, a plan for any of them reads the rows by their dates. */
const nearInTimeStatement = toNearStatement({
  ...turnIndex,
  where: `${turnIndex.where} AND said_at >= $8::timestamptz AND said_at < $9::timestamptz`,
})

/** A word is rare in up to a twentieth of the user's turns, and always in up to ten. */
const rareTurns = 10
const rareShare = 0.05
/** How much of the weight of a question's words a turn must have by its rare ones. */
const minWordShare = 0.34
/** Turns of a user that are counted: above it every word counts as much as at it. */
const maxCounted = 20_000

/**
 * The turns that share rare words with the question, by the weight of these (inverse document frequency) as a share of what all
 * words of the question weigh. The words themselves are compared too: two may share a hash. `OFFSET 0`: see `search.ts`.
 */
const wordsStatement = `
  WITH counted AS MATERIALIZED (SELECT count(*) AS size FROM (SELECT FROM turns WHERE tenant = $1 AND user_id = $2 LIMIT ${maxCounted}) seen),
  asked AS (SELECT DISTINCT word AS text, hashtextextended(word, 0) AS word FROM json_array_elements_text($3::json) AS word),
  weighed AS MATERIALIZED (
    SELECT a.word, held.turns, ln(1 + size::float8 / greatest(held.turns, 1)) AS weight,
      held.turns <= greatest(${rareTurns}, size * ${rareShare}) AS is_rare
    FROM asked a CROSS JOIN counted CROSS JOIN LATERAL (SELECT count(*) AS turns FROM (
      SELECT FROM turn_words w WHERE w.tenant = $1 AND w.user_id = $2 AND w.word = a.word LIMIT ${maxCounted * rareShare + 1}
    ) held) held
  ), hit AS (
    SELECT w.number, sum(a.weight) AS weight FROM weighed a
      CROSS JOIN LATERAL (SELECT number FROM turn_words WHERE tenant = $1 AND user_id = $2 AND word = a.word OFFSET 0) w
    WHERE a.is_rare GROUP BY w.number HAVING sum(a.weight) >= ${minWordShare} * (SELECT sum(weight) FROM weighed)
  )
  SELECT ${columns} FROM hit CROSS JOIN LATERAL (SELECT * FROM turns WHERE number = hit.number OFFSET 0) t
  WHERE t.tenant = $1 AND t.session_id <> $5 AND t.said_at >= $6::timestamptz AND t.said_at < $7::timestamptz
    AND t.words @@ $8::tsquery
  ORDER BY hit.weight DESC, t.said_at DESC LIMIT $4`

const latestStatement = `
  SELECT ${columns} FROM turns WHERE tenant = $1 AND user_id = $2 AND session_id <> $3
    AND said_at >= $4::timestamptz AND said_at < $5::timestamptz ORDER BY said_at DESC LIMIT ${listLength}`

const anyTime = { from: new Date('0001-01-01'), until: new Date('9999-01-01'), isLatest: false }

/**
 * The ended turns of a user's other sessions that are related to a question, by vector and by rare words, the best first: two
 * of a session and five in all at most. A repeated turn counts once. Inside a transaction of the user; sends all statements
 * before it first waits.
 */
const findTurns = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  sessionId: string,
  { text, vectors }: { text: string; vectors: MemoryQuery['vectors'] },
  time: AskedTime | null,
): Promise<TurnHit[]> => {
  const { from, until, isLatest } = time ?? anyTime
  const period = [sessionId, from.toISOString(), until.toISOString()]
  const query = async (statement: string, values: readonly unknown[]) =>
    (await sql.query<TurnRow>(statement, [business, user_id, ...values])).rows
  if (isLatest)
    return chooseTurns((await query(latestStatement, period)).map((row) => ({ ...row, relevance: 0.6 })))
  const words = listContentWords(text).slice(0, maxWords)
  const lists = await Promise.all([
    ...vectors.map(({ space, vector }) =>
      query(time ? nearInTimeStatement : nearStatement, [
        space,
        toVectorText(vector),
        computeSignature(vector),
        listLength,
        ...(time ? period : [sessionId]),
      ]),
    ),
    ...(words.length > 0
      ? [query(wordsStatement, [JSON.stringify(words), listLength, ...period, toTsQuery(words)])]
      : []),
  ])
  const now = new Date()
  const ranked = lists.map((rows) => ({
    rows: rows.map((row) => ({
      ...row,
      // how long ago it was does not make a turn less related
      id: `${row.session_id} ${row.turn}`,
      kind: 'episode' as const,
      strength: 1,
      last_used_at: now,
    })),
  }))
  return chooseTurns(mergeByRank(ranked, now, listLength))
}

const maxWords = 64

/**
 * See `findTurns`. Asks embedding models only where the user has turns in their spaces, and not for the latest talk.
 * `ownWords`: those of the user, which alone are searched for dates.
 */
export const searchTurns = async (
  parts: MemoryServices,
  owner: MemoryOwner,
  caller: ModelCaller,
  sessionId: string,
  { text, ownWords }: { text: string; ownWords: string },
  signal: AbortSignal,
): Promise<TurnHit[]> => {
  const time = findAskedTime(ownWords, new Date())
  const spaces =
    time?.isLatest || parts.embedder.current() === hashSpace
      ? []
      : await sendAsUser(parts.database, owner, (sql) => readSpaces(sql, owner, turnIndex))
  const vectors = await embedQuery(parts, spaces, text, caller, signal)
  return sendAsUser(parts.database, owner, (sql) => findTurns(sql, owner, sessionId, { text, vectors }, time))
}

const chooseTurns = (hits: readonly TurnHit[]): TurnHit[] => {
  const chosen: TurnHit[] = []
  for (const { session_id, turn, content, said_at, relevance } of hits) {
    if (chosen.length === maxTurns) break
    const ofSession = chosen.filter((other) => other.session_id === session_id).length
    // a fork and a retry say the same again
    if (ofSession < maxTurnsOfSession && !chosen.some((other) => other.content === content))
      chosen.push({ session_id, turn, content, said_at, relevance })
  }
  return chosen
}
