import { openDatabase } from '../../src/infra/database/open.ts'
import type { Embedder } from '../../src/infra/memory/embeddings.ts'
import { leastSimilarity, searchMemories, vectorText } from '../../src/infra/memory/search.ts'
import { signatureOf } from '../../src/infra/memory/signature.ts'
import { unit } from '../../src/state/memory/hash-embedding.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { connect } from '../support/database.ts'
import type { Place } from '../support/place.ts'
import { latencies } from '../support/statistics.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const size = 768
const space = 'bench'
const centreCount = 200
const atOnce = 500
const who = { tenant: 'default', user_id: 'measured' }

const noise = (): number => Math.random() - 0.5
const centres = Array.from({ length: centreCount }, () => Array.from({ length: size }, noise))
/** Near one of many centres, as texts lie near their topics. */
const someVector = (): number[] => {
  const centre = centres[Math.floor(Math.random() * centreCount)] ?? []
  return unit(centre.map((number) => number + 1.2 * noise()))
}

type Stored = { id: string; vector: number[] }

/** `own` memories of the user who is measured, among as many of others as make up `all`. */
const fill = async (place: Place, own: number, all: number): Promise<Stored[]> => {
  const client = await connect(place)
  const stored: Stored[] = []
  await client.query(`INSERT INTO businesses (tenant) VALUES ('default') ON CONFLICT DO NOTHING`)
  for (let at = 0; at < all; at += atOnce) {
    const rows = Array.from({ length: Math.min(atOnce, all - at) }, (_, n) => {
      const vector = someVector()
      const isOwn = Math.floor(((at + n) * own) / all) !== Math.floor(((at + n + 1) * own) / all)
      const id = `m${at + n}`
      if (isOwn) stored.push({ id, vector })
      return { id, user: isOwn ? who.user_id : `u${n % 99}`, v: vectorText(vector), s: signatureOf(vector) }
    })
    await client.query(
      `WITH g AS (SELECT * FROM json_to_recordset($1::json) AS r (id text, "user" text, v text, s text)), m AS (
         INSERT INTO memories (tenant, user_id, memory_id, kind, content, origin, trusted, words, space, signature)
         SELECT 'default', "user", id, 'fact', id, 'user', true, array_to_tsvector(ARRAY[id]), '${space}', s::bit varying FROM g)
       INSERT INTO memory_vectors (tenant, user_id, memory_id, space, embedding)
       SELECT 'default', "user", id, '${space}', v::halfvec FROM g`,
      [JSON.stringify(rows)],
    )
  }
  await client.query('ANALYZE memories')
  await client.query('ANALYZE memory_vectors')
  await client.end()
  return stored
}

const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, number, at) => sum + number * (b[at] ?? 0), 0)

/** What is less alike than a search gives out is none of them. */
const nearest = (stored: readonly Stored[], query: readonly number[]): Set<string> =>
  new Set(
    stored
      .map(({ id, vector }) => ({ id, near: dot(vector, query) }))
      .filter(({ near }) => near >= leastSimilarity)
      .toSorted((a, b) => b.near - a.near)
      .slice(0, 10)
      .map(({ id }) => id),
  )

type Search = (query: readonly number[]) => Promise<string[]>

/** Time of a search, and the share of the ten truly nearest that it finds. */
const measure = async (place: Place, stored: readonly Stored[], search: Search): Promise<Figures> => {
  const ms: number[] = []
  let hits = 0
  let wanted = 0
  const queries = place.count(100)
  for (let n = 0; n < queries; n++) {
    const query = someVector()
    const since = performance.now()
    const found = await search(query)
    ms.push(performance.now() - since)
    const truth = nearest(stored, query)
    wanted += truth.size
    hits += found.slice(0, 10).filter((id) => truth.has(id)).length
  }
  return { ...latencies(ms), 'recall@10': hits / wanted }
}

const ours =
  (own: number, all: number): Variant =>
  async (place) => {
    const stored = await fill(place, place.count(own), place.count(all))
    const database = await openDatabase(place.config, log)
    let asked: readonly number[] = []
    const embedder: Embedder = { current: () => space, offers: () => true, embed: async () => [[...asked]] }
    const caller = { business_id: who.tenant, user_id: who.user_id, run_id: null }
    const found = await measure(place, stored, async (query) => {
      asked = query
      const search = { text: '?', limit: 10 }
      const hits = await searchMemories(
        { database, embedder, log },
        who,
        caller,
        search,
        new AbortController().signal,
      )
      return hits.map(({ id }) => id)
    })
    await database.close()
    return found
  }

/** The trap: the index gives its few nearest of all users, and the filter comes after. */
const filtered =
  (own: number, all: number): Variant =>
  async (place) => {
    const stored = await fill(place, place.count(own), place.count(all))
    const client = await connect(place)
    await client.query(
      `CREATE TEMP TABLE trap AS SELECT user_id, memory_id, embedding::halfvec(${size}) FROM memory_vectors`,
    )
    await client.query('CREATE INDEX ON trap USING hnsw (embedding halfvec_ip_ops)')
    await client.query('SET enable_seqscan = off')
    const found = await measure(place, stored, async (query) => {
      const { rows } = await client.query<{ memory_id: string }>(
        'SELECT memory_id FROM trap WHERE user_id = $1 ORDER BY embedding <#> $2::halfvec LIMIT 10',
        [who.user_id, vectorText(query)],
      )
      return rows.map(({ memory_id }) => memory_id)
    })
    await client.end()
    return found
  }

const memory: Case = {
  about: 'the ten nearest memories of one user among those of all, 768 numbers each, against brute force',
  ours: {
    '500 of 50000': ours(500, 50_000),
    '5000 of 50000': ours(5000, 50_000),
    '20000 of 50000': ours(20_000, 50_000),
  },
  beside: { 'HNSW with a filter, 500 of 50000': filtered(500, 50_000) },
}

export default memory
