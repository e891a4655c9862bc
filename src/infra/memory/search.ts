import type { Label } from '../../state/context/fence.ts'
import { isMasonError } from '../../state/errors.ts'
import type { MemoryKind } from '../../state/memory/kinds.ts'
import { mergeByRank } from '../../state/memory/rank.ts'
import { wordsOf } from '../../state/memory/words.ts'
import type { Log, Sql } from '../../state/ports.ts'
import type { Database } from '../database/database.ts'
import type { Caller } from '../models/ports.ts'
import type { Embedder } from './embeddings.ts'
import { asUser, type Who } from './scope.ts'
import { signatureOf } from './signature.ts'

export type MemoryRow = Label & {
  id: string
  kind: MemoryKind
  content: string
  source_action_ids: number[]
  strength: number
  last_used_at: Date
  created_at: Date
}
export type Hit = MemoryRow & { relevance: number }
type Near = MemoryRow & { similarity: number }

/** `size`: memories there, counted up to one more than are all compared. */
export type Space = { space: string; size: number }
/** What is looked for: its words, and its vector in every space that the user has memories in. */
export type Query = {
  words: string | null
  vectors: readonly (Space & { vector: readonly number[] })[]
}

export const memoryColumns =
  'memory_id AS id, kind, content, origin, trusted, source_action_ids, strength, last_used_at, created_at'

/** Up to so many memories in a space all vectors are compared; above it the nearest by their signs are. */
const comparedAll = 4000
const comparedNearest = 400

/** Jumps from one space to the next: as many steps as there are spaces. */
const spacesStatement = `
  WITH RECURSIVE found AS (
    (SELECT space FROM memories WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL ORDER BY space LIMIT 1)
    UNION ALL
    SELECT (SELECT m.space FROM memories m WHERE m.tenant = $1 AND m.user_id = $2 AND m.superseded_by IS NULL
      AND m.space > found.space ORDER BY m.space LIMIT 1) FROM found WHERE found.space IS NOT NULL
  ) SELECT space, (SELECT count(*)::int FROM (SELECT FROM memories m WHERE m.tenant = $1 AND m.user_id = $2
      AND m.space = found.space AND m.superseded_by IS NULL LIMIT ${comparedAll + 1}) counted) AS size
  FROM found WHERE space IS NOT NULL`

const exactStatement = `
  SELECT ${memoryColumns}, -near.distance AS similarity FROM (
    SELECT memory_id AS near_id, embedding <#> $4::halfvec AS distance FROM memory_vectors
    WHERE tenant = $1 AND user_id = $2 AND space = $3 ORDER BY distance LIMIT $5
  ) near JOIN memories ON tenant = $1 AND memory_id = near_id ORDER BY distance`

/** One pass over the user's narrow rows, then the vectors of the nearest by their keys. */
const nearStatement = `
  SELECT near.*, -(v.embedding <#> $4::halfvec) AS similarity FROM (
    SELECT ${memoryColumns} FROM memories
    WHERE tenant = $1 AND user_id = $2 AND space = $3 AND superseded_by IS NULL
    ORDER BY signature <~> $6::bit varying LIMIT ${comparedNearest}
  ) near CROSS JOIN LATERAL (
    SELECT embedding FROM memory_vectors WHERE tenant = $1 AND memory_id = near.id OFFSET 0
  ) v ORDER BY similarity DESC LIMIT $5`

/** A condition on text is looked at row by row: it must not keep the planner from the user's index. */
const wordsStatement = `
  SELECT ${memoryColumns} FROM memories
  WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND words @@ $3::tsquery
  ORDER BY ts_rank(words, $3::tsquery) DESC, created_at DESC LIMIT $4`

/** Less alike than this is not alike. */
export const leastSimilarity = 0.1
const listLength = 40

export const spacesOf = async (sql: Sql, { tenant, user_id }: Who): Promise<Space[]> =>
  (await sql.query<Space>(spacesStatement, [tenant, user_id])).rows

/** Lexemes as a tsquery takes them. */
const quoted = (word: string): string => `'${word.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
const mostWords = 64

export type Parts = { database: Database; embedder: Embedder; log: Log }

/**
 * A text made ready to be looked for. A space whose model cannot be asked is left out: the words find its memories still.
 */
export const prepareQuery = async (
  { embedder, log }: Pick<Parts, 'embedder' | 'log'>,
  spaces: readonly Space[],
  text: string,
  caller: Caller,
  signal: AbortSignal,
): Promise<Query> => {
  const words = [...new Set(wordsOf(text))].slice(0, mostWords)
  const vectors = await Promise.all(
    spaces
      .filter(({ space }) => space !== '' && embedder.offers(space))
      .map(async ({ space, size }) => {
        const [vector] = await embedder.embed(space, [text], caller, signal).catch((error: unknown) => {
          if (signal.aborted || !isMasonError(error)) throw error
          log.warn({ space, error: error.message }, 'memories are looked for by their words only')
          return []
        })
        return vector ? [{ space, size, vector }] : []
      }),
  )
  return { words: words.length > 0 ? words.map(quoted).join(' | ') : null, vectors: vectors.flat() }
}

export const vectorText = (vector: readonly number[]): string => `[${vector.join(',')}]`

/** By nearness and by words, the best first. Inside a transaction of the user. */
export const findMemories = async (sql: Sql, who: Who, query: Query, limit: number): Promise<Hit[]> => {
  const { tenant, user_id } = who
  const most = Math.max(limit, listLength)
  const byVector = query.vectors.map(({ space, size, vector }) => {
    const values = [tenant, user_id, space, vectorText(vector), most]
    return size <= comparedAll
      ? sql.query<Near>(exactStatement, values)
      : sql.query<Near>(nearStatement, [...values, signatureOf(vector)])
  })
  const byWords =
    query.words === null ? [] : [sql.query<MemoryRow>(wordsStatement, [tenant, user_id, query.words, most])]
  const [near, worded] = await Promise.all([Promise.all(byVector), Promise.all(byWords)])
  // similarities of different models cannot be compared, but each list is an order
  const lists = [
    ...near.map(({ rows }) => rows.filter(({ similarity }) => similarity >= leastSimilarity)),
    ...worded.map(({ rows }) => rows),
  ]
  return mergeByRank(lists, new Date(), limit)
}

/** Memories of one user and what they have to do with a text, the best first; empty when he has none. */
export const searchMemories = async (
  parts: Parts,
  who: Who,
  caller: Caller,
  search: { text: string; limit: number },
  signal: AbortSignal,
): Promise<Hit[]> => {
  const { database } = parts
  const spaces = await asUser(database, who, (sql) => spacesOf(sql, who), { atOnce: true })
  if (spaces.length === 0) return []
  const query = await prepareQuery(parts, spaces, search.text, caller, signal)
  return asUser(database, who, (sql) => findMemories(sql, who, query, search.limit), { atOnce: true })
}
