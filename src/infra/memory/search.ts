import type { Label } from '../../state/context/fence.ts'
import { isMasonError } from '../../state/errors.ts'
import { hashSpace } from '../../state/memory/hash-embedding.ts'
import type { MemoryKind } from '../../state/memory/kinds.ts'
import { mergeByRank } from '../../state/memory/rank.ts'
import { wordsOf } from '../../state/memory/words.ts'
import type { Log, Sql } from '../../state/ports.ts'
import { noTracer, type Tracer } from '../../state/trace.ts'
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

/** What is looked for: its words, and its vector in every space that the user has memories in. */
export type Query = {
  words: string | null
  vectors: readonly { space: string; vector: readonly number[] }[]
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
  ) SELECT space FROM found WHERE space IS NOT NULL`

/**
 * The size of the space decides which half does anything, so nobody has to ask for it first. The pass by signs names only
 * what `memories_near` holds: it reads that index and no row.
 */
const nearStatement = `
  WITH counted AS MATERIALIZED (SELECT count(*) AS size FROM (SELECT FROM memories
    WHERE tenant = $1 AND user_id = $2 AND space = $3 AND superseded_by IS NULL LIMIT ${comparedAll + 1}) seen),
  best AS (
    (SELECT memory_id, embedding <#> $4::halfvec AS distance FROM memory_vectors
     WHERE tenant = $1 AND user_id = $2 AND space = $3 AND (SELECT size FROM counted) <= ${comparedAll}
     ORDER BY distance LIMIT $6)
    UNION ALL
    (SELECT near.memory_id, v.embedding <#> $4::halfvec FROM (
       SELECT memory_id FROM memories WHERE tenant = $1 AND user_id = $2 AND space = $3 AND superseded_by IS NULL
         AND (SELECT size FROM counted) > ${comparedAll}
       ORDER BY signature <~> $5::bit varying LIMIT ${comparedNearest}
     ) near CROSS JOIN LATERAL (
       SELECT embedding FROM memory_vectors WHERE tenant = $1 AND memory_id = near.memory_id OFFSET 0
     ) v ORDER BY 2 LIMIT $6)
  )
  SELECT ${memoryColumns}, -distance AS similarity
  FROM best JOIN memories USING (memory_id) WHERE tenant = $1 ORDER BY distance`

/** A condition on text is looked at row by row: it must not keep the planner from the user's index. */
const wordsStatement = `
  SELECT ${memoryColumns} FROM memories
  WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND words @@ $3::tsquery
  ORDER BY ts_rank(words, $3::tsquery) DESC, created_at DESC LIMIT $4`

/** Less alike than this is not alike. */
export const leastSimilarity = 0.1
const listLength = 40

/** Names of the spaces that a user has memories in; '' for those without a vector. */
export const spacesOf = async (sql: Sql, { tenant, user_id }: Who): Promise<string[]> =>
  (await sql.query<{ space: string }>(spacesStatement, [tenant, user_id])).rows.map(({ space }) => space)

/** Lexemes as a tsquery takes them. */
const quoted = (word: string): string => `'${word.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
const mostWords = 64

export type Parts = { database: Database; embedder: Embedder; log: Log; tracer?: Tracer }

/** A text as its words, as a tsquery takes them; null when it has none. */
const wordsQuery = (text: string): string | null => {
  const words = [...new Set(wordsOf(text))].slice(0, mostWords)
  return words.length > 0 ? words.map(quoted).join(' | ') : null
}

/** A space whose model cannot be asked is left out: the words find its memories still. */
const vectorsOf = async (
  { embedder, log }: Pick<Parts, 'embedder' | 'log'>,
  spaces: readonly string[],
  text: string,
  caller: Caller,
  signal: AbortSignal,
): Promise<Query['vectors']> => {
  const vectors = await Promise.all(
    spaces
      .filter((space) => space !== '' && embedder.offers(space))
      .map(async (space) => {
        const [vector] = await embedder.embed(space, [text], caller, signal).catch((error: unknown) => {
          if (signal.aborted || !isMasonError(error)) throw error
          log.warn({ space, error: error.message }, 'memories are looked for by their words only')
          return []
        })
        return vector ? [{ space, vector }] : []
      }),
  )
  return vectors.flat()
}

/** A text made ready to be looked for in these spaces. */
export const prepareQuery = async (
  parts: Pick<Parts, 'embedder' | 'log'>,
  spaces: readonly string[],
  text: string,
  caller: Caller,
  signal: AbortSignal,
): Promise<Query> => ({
  words: wordsQuery(text),
  vectors: await vectorsOf(parts, spaces, text, caller, signal),
})

/** For a halfvec, which keeps three digits and a bit. */
export const vectorText = (vector: readonly number[]): string =>
  `[${vector.map((number) => number.toPrecision(5)).join(',')}]`

/** Each in its own order: similarities of different models cannot be compared. `space` is null where words found them. */
type List = { space: string | null; rows: MemoryRow[] }

/** Asks everything before it first waits. */
const listsOf = (sql: Sql, { tenant, user_id }: Who, query: Query, limit: number): Promise<List[]> => {
  const most = Math.max(limit, listLength)
  const lists = query.vectors.map(async ({ space, vector }): Promise<List> => {
    const values = [tenant, user_id, space, vectorText(vector), signatureOf(vector), most]
    const { rows } = await sql.query<Near>(nearStatement, values)
    return { space, rows: rows.filter(({ similarity }) => similarity >= leastSimilarity) }
  })
  const byWords = async (words: string): Promise<List> => {
    const { rows } = await sql.query<MemoryRow>(wordsStatement, [tenant, user_id, words, most])
    return { space: null, rows }
  }
  return Promise.all(query.words === null ? lists : [...lists, byWords(query.words)])
}

const merged = (lists: readonly List[], limit: number): Hit[] =>
  mergeByRank(
    lists.map(({ rows }) => rows),
    new Date(),
    limit,
  )

/** By nearness and by words, the best first. Inside a transaction of the user. */
export const findMemories = async (sql: Sql, who: Who, query: Query, limit: number): Promise<Hit[]> =>
  merged(await listsOf(sql, who, query, limit), limit)

/** Memories of one user and what they have to do with a text, the best first; empty when he has none. */
export const searchMemories = (
  parts: Parts,
  who: Who,
  caller: Caller,
  search: { text: string; limit: number },
  signal: AbortSignal,
): Promise<Hit[]> =>
  (parts.tracer ?? noTracer).retrieval(async (note) => {
    const hits = await searchAll(parts, who, caller, search, signal)
    note({ found: hits.length })
    return hits
  })

/**
 * One round trip where all memories are in the built-in space, whose vectors cost nothing. A model is asked only for who has
 * memories in its space: beside its answer a second round trip is little.
 */
const searchAll = async (
  parts: Parts,
  who: Who,
  caller: Caller,
  { text, limit }: { text: string; limit: number },
  signal: AbortSignal,
): Promise<Hit[]> => {
  const ask = <T>(work: (sql: Sql) => Promise<T>) => asUser(parts.database, who, work, { atOnce: true })
  const first = await prepareQuery(parts, [hashSpace], text, caller, signal)
  const [spaces, lists] = await ask((sql) =>
    Promise.all([spacesOf(sql, who), listsOf(sql, who, first, limit)]),
  )
  const found = lists.filter(({ space }) => space === null || spaces.includes(space))
  const others = spaces.filter((space) => space !== hashSpace)
  const vectors = await vectorsOf(parts, others, text, caller, signal)
  if (vectors.length === 0) return merged(found, limit)
  const more = await ask((sql) => listsOf(sql, who, { words: null, vectors }, limit))
  return merged([...more, ...found], limit)
}
