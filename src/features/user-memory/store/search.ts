import { toSql } from 'pgvector'
import type { Database } from '../../../infra/database/database.ts'
import type { ModelCaller } from '../../../models/ports/model-ports.ts'
import { isMasonError } from '../../../state/errors.ts'
import type { MemoryKind } from '../../../state/memory-kinds.ts'
import type { Log } from '../../../state/ports/log.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { noTracer, type Tracer } from '../../../state/ports/tracer.ts'
import type { ProvenanceLabel } from '../../../state/provenance.ts'
import { extractWords } from '../../../state/text/words.ts'
import { hashSpace } from '../policy/hash-embedding.ts'
import { mergeByRank } from '../policy/rank-fusion.ts'
import type { MemoryEmbedder } from './embedder.ts'
import { type MemoryOwner, sendAsUser } from './user-scope.ts'
import { computeSignature } from './vector-signature.ts'

/** A memory as its row has it. */
export type MemoryRow = ProvenanceLabel & {
  id: string
  kind: MemoryKind
  content: string
  source_action_ids: number[]
  strength: number
  last_used_at: Date
  created_at: Date
}
/** A memory that a search returned; `relevance` from 0 to 1. */
export type MemoryHit = MemoryRow & { relevance: number }

/** A text to search for: its words, and its vector in each space that the user has memories in. */
export type MemoryQuery = {
  words: readonly string[]
  vectors: readonly { space: string; vector: readonly number[] }[]
}

/** Whether the evidence of a memory was checked. Earlier versions wrote `trusted` by shared words, and no evidence. */
export const trustedColumn = 'evidence IS NOT NULL AS trusted'
/** The columns of a `MemoryRow`. */
export const memoryColumns = `memory_id AS id, kind, content, origin, ${trustedColumn}, source_action_ids, strength,
  last_used_at, created_at`

/** The least cosine similarity of related texts in a space that is not calibrated yet (`space-calibration.ts`). */
export const minSimilarity = 0.1
/** The least deviation that counts: a model whose vectors are all alike, or zeros, says nothing. */
export const leastDeviation = 0.01

/** What vectors are searched in: a table of rows with their spaces and signatures, and one of their vectors. */
export type VectorIndex = {
  rows: 'memories' | 'turns'
  vectors: 'memory_vectors' | 'turn_vectors'
  id: 'memory_id' | 'number'
  /** A condition on either table, after `AND`. */
  where: string
  /** A condition on `rows`: those that are searched. */
  live: string
  columns: string
}
/** Up to this many memories in a space every vector is compared; above it, those whose signatures are nearest. */
const maxComparedAll = 4000
const maxComparedNearest = 400

/** Jumps from one space to the next, so it takes one index lookup a space. */
const toSpacesStatement = ({ rows, live }: Pick<VectorIndex, 'rows' | 'live'>): string => `
  WITH RECURSIVE spaces AS (
    (SELECT space FROM ${rows} WHERE tenant = $1 AND user_id = $2 AND ${live} ORDER BY space LIMIT 1)
    UNION ALL
    SELECT (SELECT m.space FROM ${rows} m WHERE m.tenant = $1 AND m.user_id = $2 AND ${live}
      AND m.space > spaces.space ORDER BY m.space LIMIT 1) FROM spaces WHERE spaces.space IS NOT NULL
  ) SELECT space FROM spaces WHERE space IS NOT NULL`

/**
 * The rows nearest to the vector $4 with the signature $5 in the space $3, at most $6, the nearest first, whose similarity is
 * `minDeviations` above the mean of unrelated texts. The size of the space selects the half that runs, which saves a round trip.
 * The pass by signatures names only columns of an index, so it reads no row.
 */
export const toNearStatement = (
  { rows, vectors, id, where, live, columns }: VectorIndex,
  minDeviations = 1,
): string => `
  WITH counted AS MATERIALIZED (SELECT count(*) AS size FROM (SELECT FROM ${rows}
    WHERE tenant = $1 AND user_id = $2 AND space = $3 AND ${live} LIMIT ${maxComparedAll + 1}) seen),
  best AS (
    (SELECT ${id} AS found, embedding <#> $4::halfvec AS distance FROM ${vectors}
     WHERE tenant = $1 AND user_id = $2 AND space = $3 AND (SELECT size FROM counted) <= ${maxComparedAll} ${where}
     ORDER BY distance LIMIT $6)
    UNION ALL
    (SELECT near.${id}, v.embedding <#> $4::halfvec FROM (
       SELECT ${id} FROM ${rows} WHERE tenant = $1 AND user_id = $2 AND space = $3 AND ${live} ${where}
         AND (SELECT size FROM counted) > ${maxComparedAll}
       ORDER BY signature <~> $5::bit varying LIMIT ${maxComparedNearest}
     ) near CROSS JOIN LATERAL (
       SELECT embedding FROM ${vectors} WHERE tenant = $1 AND ${id} = near.${id} OFFSET 0
     ) v ORDER BY 2 LIMIT $6)
  )
  SELECT ${columns} FROM best CROSS JOIN LATERAL (SELECT * FROM ${rows} WHERE tenant = $1 AND ${id} = found OFFSET 0) ${rows}
  WHERE distance <= -COALESCE((SELECT pair_mean + ${minDeviations} * greatest(pair_deviation, ${leastDeviation}) FROM memory_spaces WHERE space = $3), ${minSimilarity})
  ORDER BY distance`

/** The memories that are searched. */
export const memoryIndex: VectorIndex = {
  rows: 'memories',
  vectors: 'memory_vectors',
  id: 'memory_id',
  columns: memoryColumns,
  where: '',
  live: 'superseded_by IS NULL',
}
const nearStatement = toNearStatement(memoryIndex)

/**
 * Those that share the most words with the text, the latest first, by the index of words; while the user has memories of an
 * earlier version that are not in it yet, row by row. Both rank alike. The words themselves are compared too: two may share a
 * hash. With `OFFSET 0` each word and each memory is a lookup by itself, also by a plan from when there were no memories.
 */
const wordsStatement = `
  WITH unread AS MATERIALIZED (SELECT EXISTS (SELECT FROM memories
    WHERE tenant = $1 AND user_id = $2 AND number IS NULL AND superseded_by IS NULL) AS is_any),
  hit AS (
    SELECT w.number, count(*) AS shared
    FROM (SELECT DISTINCT hashtextextended(word, 0) AS word FROM json_array_elements_text($4::json) AS word) asked
      CROSS JOIN LATERAL (SELECT number FROM memory_words WHERE tenant = $1 AND user_id = $2 AND word = asked.word OFFSET 0) w
    WHERE NOT (SELECT is_any FROM unread) GROUP BY w.number ORDER BY shared DESC, number DESC LIMIT $5
  ), best AS (
    SELECT m.*, hit.shared AS rank FROM hit CROSS JOIN LATERAL (SELECT * FROM memories WHERE number = hit.number OFFSET 0) m
    WHERE m.tenant = $1 AND m.user_id = $2 AND m.superseded_by IS NULL AND m.words @@ $3::tsquery
    UNION ALL
    SELECT memories.*, ts_rank(words, $3::tsquery) FROM memories WHERE (SELECT is_any FROM unread)
      AND tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND words @@ $3::tsquery
  )
  SELECT ${memoryColumns} FROM best ORDER BY rank DESC, created_at DESC LIMIT $5`

const listLength = 40

/** The spaces that a user has memories in, or other rows; '' for those without a vector. */
export const readSpaces = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  index: Pick<VectorIndex, 'rows' | 'live'> = memoryIndex,
): Promise<string[]> =>
  (await sql.query<{ space: string }>(toSpacesStatement(index), [business, user_id])).rows.map(
    ({ space }) => space,
  )

/** A lexeme, quoted for a tsquery. */
const quoteLexeme = (word: string): string => `'${word.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
const maxWords = 64

/** What a search of memories needs. */
export type MemoryServices = {
  database: Database
  embedder: MemoryEmbedder
  log: Log
  tracer?: Tracer
  /** False: turns are neither stored nor recalled. */
  recall?: boolean
}

/** A tsquery that matches any of these words. */
export const toTsQuery = (words: readonly string[]): string => words.map(quoteLexeme).join(' | ')

/** The vectors of a text in these spaces. Leaves out a space whose model fails: words still match its memories. */
export const embedQuery = async (
  { embedder, log }: Pick<MemoryServices, 'embedder' | 'log'>,
  spaces: readonly string[],
  text: string,
  caller: ModelCaller,
  signal: AbortSignal,
): Promise<MemoryQuery['vectors']> => {
  const vectors = await Promise.all(
    spaces
      .filter((space) => space !== '' && embedder.offers(space))
      .map(async (space) => {
        const [vector] = await embedder.embed(space, [text], caller, signal).catch((error: unknown) => {
          if (signal.aborted || !isMasonError(error)) throw error
          log.warn({ space, error: error.message }, 'memories are searched by their words only')
          return []
        })
        return vector ? [{ space, vector }] : []
      }),
  )
  return vectors.flat()
}

/** Prepares the query for a text: its words, and its vectors in these spaces. */
export const prepareMemoryQuery = async (
  parts: Pick<MemoryServices, 'embedder' | 'log'>,
  spaces: readonly string[],
  text: string,
  caller: ModelCaller,
  signal: AbortSignal,
): Promise<MemoryQuery> => ({
  words: [...new Set(extractWords(text))].slice(0, maxWords),
  vectors: await embedQuery(parts, spaces, text, caller, signal),
})

/** A vector as text for a halfvec, which stores between three and four digits. */
export const toVectorText = (vector: readonly number[]): string =>
  toSql(vector.map((number) => Number(number.toPrecision(5))))

/** One ranking: similarities of different models cannot be compared. `space`: null for matches by words. */
type ResultList = { space: string | null; rows: MemoryRow[] }

/** Sends all statements before it first waits. */
const queryLists = (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  query: MemoryQuery,
  limit: number,
): Promise<ResultList[]> => {
  const listLimit = Math.max(limit, listLength)
  const readList = async (space: string | null, statement: string, values: unknown[]) => {
    const { rows } = await sql.query<MemoryRow>(statement, [business, user_id, ...values, listLimit])
    return { space, rows }
  }
  const lists = query.vectors.map(({ space, vector }) =>
    readList(space, nearStatement, [space, toVectorText(vector), computeSignature(vector)]),
  )
  if (query.words.length > 0)
    lists.push(readList(null, wordsStatement, [toTsQuery(query.words), JSON.stringify(query.words)]))
  return Promise.all(lists)
}

/** The memories nearest to a query by vector and by words, the best first. Inside a transaction of the user. */
export const findMemories = async (
  sql: Sql,
  owner: MemoryOwner,
  query: MemoryQuery,
  limit: number,
): Promise<MemoryHit[]> => mergeByRank(await queryLists(sql, owner, query, limit), new Date(), limit)

/** The memories of one user that are related to a text, the best first; empty when there are none. */
export const searchMemories = (
  parts: MemoryServices,
  owner: MemoryOwner,
  caller: ModelCaller,
  search: { text: string; limit: number },
  signal: AbortSignal,
): Promise<MemoryHit[]> =>
  (parts.tracer ?? noTracer).retrieval(async (record) => {
    const hits = await searchAll(parts, owner, caller, search, signal)
    record({ found: hits.length })
    return hits
  })

/**
 * One round trip when all memories are in the built-in space, whose vectors cost nothing. Calls a model only for a user with
 * memories in its space; compared with that call a second round trip is cheap.
 */
const searchAll = async (
  parts: MemoryServices,
  owner: MemoryOwner,
  caller: ModelCaller,
  { text, limit }: { text: string; limit: number },
  signal: AbortSignal,
): Promise<MemoryHit[]> => {
  const first = await prepareMemoryQuery(parts, [hashSpace], text, caller, signal)
  const [spaces, lists] = await sendAsUser(parts.database, owner, (sql) =>
    Promise.all([readSpaces(sql, owner), queryLists(sql, owner, first, limit)]),
  )
  const firstLists = lists.filter(({ space }) => space === null || spaces.includes(space))
  const otherSpaces = spaces.filter((space) => space !== hashSpace)
  const vectors = await embedQuery(parts, otherSpaces, text, caller, signal)
  if (vectors.length === 0) return mergeByRank(firstLists, new Date(), limit)
  const others = { words: [], vectors }
  const otherLists = await sendAsUser(parts.database, owner, (sql) => queryLists(sql, owner, others, limit))
  return mergeByRank([...otherLists, ...firstLists], new Date(), limit)
}
