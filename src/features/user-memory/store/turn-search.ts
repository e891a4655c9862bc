import type { ModelCaller } from '../../../models/ports/model-ports.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { type AskedTime, findAskedTime } from '../policy/asked-dates.ts'
import { hashSpace } from '../policy/hash-embedding.ts'
import { listContentWords } from '../policy/turn-text.ts'
import {
  embedQuery,
  leastDeviation,
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
/** A turn that a search returned; `relevance` from 0 to 1: from a half on it is enough by itself. */
export type TurnHit = TurnRow & { relevance: number }
type ScoredRow = TurnRow & { score: number }

const maxTurns = 5
const maxTurnsOfSession = 2
const listLength = 40
const columns = 'session_id, turn, content, said_at'

/**
 * What is enough by itself, so many deviations of similarity above the mean of unrelated texts or such a share of the weight of
 * the question's words (`bench/cases/recall.bench.ts`). A score is the sum of both, each as a multiple of what is enough.
 */
const enough = { deviations: 0.8, wordShare: 0.34 }

/** The score by similarity: that of unrelated texts, 0, without a vector. Far ones count as these at most half a deviation below. */
const toSimilarityScore = (distance: string, space: string): string =>
  `COALESCE((SELECT greatest((-${distance} - pair_mean) / greatest(pair_deviation, ${leastDeviation}), -0.5) FROM memory_spaces WHERE space = ${space}), 0) / ${enough.deviations}`

/** The turns that are searched. */
export const turnIndex: VectorIndex = {
  rows: 'turns',
  vectors: 'turn_vectors',
  id: 'number',
  where: 'AND session_id <> $7',
  live: 'true',
  columns: `${columns}, ${toSimilarityScore('distance', '$3')} AS score`,
}
const nearStatement = toNearStatement(turnIndex, 0)
/** Apart: with limits that it does not know, a plan for any of them reads the rows by their dates. */
const nearInTimeStatement = toNearStatement(
  { ...turnIndex, where: `${turnIndex.where} AND said_at >= $8::timestamptz AND said_at < $9::timestamptz` },
  0,
)

/** A word is rare in up to a fifth of the user's turns, and at most a thousand; and always in up to ten. */
const rareTurns = { share: 0.2, least: 10, most: 1000 }
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
      held.turns <= greatest(${rareTurns.least}, least(${rareTurns.most}, size * ${rareTurns.share})) AS is_rare
    FROM asked a CROSS JOIN counted CROSS JOIN LATERAL (SELECT count(*) AS turns FROM (
      SELECT FROM turn_words w WHERE w.tenant = $1 AND w.user_id = $2 AND w.word = a.word LIMIT ${rareTurns.most + 1}
    ) held) held
  ), hit AS (
    SELECT w.number, sum(a.weight) AS weight FROM weighed a
      CROSS JOIN LATERAL (SELECT number FROM turn_words WHERE tenant = $1 AND user_id = $2 AND word = a.word OFFSET 0) w
    WHERE a.is_rare GROUP BY w.number HAVING sum(a.weight) >= ${enough.wordShare / 2} * (SELECT sum(weight) FROM weighed)
  ), given AS MATERIALIZED (SELECT space, vector::halfvec FROM json_to_recordset($9::json) AS g (space text, vector text))
  SELECT ${columns}, weight / (SELECT sum(weight) FROM weighed) / ${enough.wordShare} + ${toSimilarityScore('distance', 'near.space')} AS score
  FROM (
    SELECT t.*, hit.weight FROM hit CROSS JOIN LATERAL (SELECT * FROM turns WHERE number = hit.number OFFSET 0) t
    WHERE t.tenant = $1 AND t.session_id <> $5 AND t.said_at >= $6::timestamptz AND t.said_at < $7::timestamptz
      AND t.words @@ $8::tsquery
    ORDER BY hit.weight DESC, t.said_at DESC LIMIT $4
  ) t LEFT JOIN LATERAL (
    SELECT v.space, v.embedding <#> given.vector AS distance FROM turn_vectors v JOIN given ON given.space = v.space WHERE v.number = t.number OFFSET 0
  ) near ON true
  ORDER BY weight DESC, said_at DESC`

const latestStatement = `
  SELECT ${columns}, 1::float8 AS score FROM turns WHERE tenant = $1 AND user_id = $2 AND session_id <> $3
    AND said_at >= $4::timestamptz AND said_at < $5::timestamptz ORDER BY said_at DESC LIMIT ${listLength}`

const anyTime = { from: new Date('0001-01-01'), until: new Date('9999-01-01'), isLatest: false }

/**
 * The ended turns of a user's other sessions that are related to a question, by vector and by rare words, the best first: two
 * of a session and five in all at most, and none where the best is not enough. A repeated turn counts once. Inside a
 * transaction of the user; sends all statements before it first waits.
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
    (await sql.query<ScoredRow>(statement, [business, user_id, ...values])).rows
  if (isLatest) return chooseTurns(await query(latestStatement, period))
  const words = listContentWords(text).slice(0, maxWords)
  const given = vectors.map(({ space, vector }) => ({
    space,
    vector: toVectorText(vector),
    signature: computeSignature(vector),
  }))
  const limits = time ? period : [sessionId]
  const near = given.map(({ space, vector, signature }) =>
    query(time ? nearInTimeStatement : nearStatement, [space, vector, signature, listLength, ...limits]),
  )
  const sharing = [JSON.stringify(words), listLength, ...period, toTsQuery(words), JSON.stringify(given)]
  const lists = await Promise.all([...near, words.length > 0 ? query(wordsStatement, sharing) : []])
  // the list by words has the whole score
  const scored = new Map(lists.flat().map((row) => [`${row.session_id} ${row.turn}`, row]))
  const ranked = [...scored.values()].toSorted((a, b) => b.score - a.score)
  return (ranked[0]?.score ?? 0) < 1 ? [] : chooseTurns(ranked.filter(({ score }) => score > 0))
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

const chooseTurns = (rows: readonly ScoredRow[]): TurnHit[] => {
  const chosen: TurnHit[] = []
  for (const { score, ...row } of rows) {
    if (chosen.length === maxTurns) break
    const ofSession = chosen.filter(({ session_id }) => session_id === row.session_id).length
    // a fork and a retry say the same again
    if (ofSession < maxTurnsOfSession && !chosen.some(({ content }) => content === row.content))
      chosen.push({ ...row, relevance: score / (1 + score) })
  }
  return chosen
}
