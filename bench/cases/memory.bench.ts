import { hashSpace } from '../../src/features/user-memory/policy/hash-embedding.ts'
import type { MemoryEmbedder } from '../../src/features/user-memory/store/embedder.ts'
import { minSimilarity, searchMemories, toVectorText } from '../../src/features/user-memory/store/search.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { openDatabase } from '../../src/infra/database/open-database.ts'
import type { Sql } from '../../src/state/ports/sql.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { connect, settle } from '../support/database.ts'
import {
  fillMemories,
  inBatches,
  type Memory,
  memoryTables,
  size,
  someMemories,
  someVector,
  someWords,
  tenant,
  textOf,
} from '../support/memories.ts'
import type { Place } from '../support/place.ts'
import { latencies } from '../support/statistics.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }
/** How many memories the users have who are measured, all in one table; the others are of 99 users. */
const owned = [500, 5000, 20_000]
const warmUps = 100

const dot = (a: Float32Array, b: Float32Array): number => {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}

/** What is less alike than a search gives out is none of them. */
const nearest = (stored: readonly Memory[], query: readonly number[]): Set<string> => {
  const asked = Float32Array.from(query)
  return new Set(
    stored
      .map(({ id, vector }) => ({ id, near: dot(vector, asked) }))
      .filter(({ near }) => near >= minSimilarity)
      .toSorted((a, b) => b.near - a.near)
      .slice(0, 10)
      .map(({ id }) => id),
  )
}

type Search = (user: string, query: readonly number[]) => Promise<string[]>

/** For each user: the time of a search, and the share of the ten truly nearest that it finds. Warm-up is not counted. */
const measure = async (
  place: Place,
  memories: readonly Memory[],
  owned: readonly number[],
  search: Search,
): Promise<Figures> => {
  const figures: Figures = {}
  for (const count of owned) {
    const user = `measured ${count}`
    const stored = memories.filter((memory) => memory.user === user)
    for (let n = 0; n < place.count(warmUps); n++) await search(user, someVector())
    const ms: number[] = []
    let hits = 0
    let wanted = 0
    const queries = place.count(100)
    for (let n = 0; n < queries; n++) {
      const query = someVector()
      const since = performance.now()
      const found = await search(user, query)
      ms.push(performance.now() - since)
      const truth = nearest(stored, query)
      wanted += truth.size
      hits += found.slice(0, 10).filter((id) => truth.has(id)).length
    }
    for (const [name, value] of Object.entries({ ...latencies(ms), 'recall@10': hits / wanted }))
      figures[`${count}: ${name}`] = value
  }
  return figures
}

/** Every user's search once more, with eight words beside the vector. */
const measureWords = async (place: Place, search: Search): Promise<Figures> => {
  const figures: Figures = {}
  for (const count of owned) {
    const ms: number[] = []
    for (let n = 0; n < place.count(50); n++) {
      const query = someVector()
      const since = performance.now()
      await search(`measured ${count}`, query)
      ms.push(performance.now() - since)
    }
    figures[`${count}: ms p50 with words`] = latencies(ms)['ms p50']
  }
  return figures
}

const openEmbedded = (place: Place): Promise<Database> =>
  openDatabase({ ...place.config, database: { kind: 'memory' } }, log)

const ours =
  (all: number, open: (place: Place) => Promise<Database>): Variant =>
  async (place) => {
    const memories = someMemories(place, all, owned)
    const database = await open(place)
    await fillMemories(database, memories)
    await settle(place, database, memoryTables)
    let asked: readonly number[] = []
    const embedder: MemoryEmbedder = {
      current: () => hashSpace,
      offers: () => true,
      embed: async () => [[...asked]],
    }
    const searchFor =
      (textOf: () => string): Search =>
      async (user_id, query) => {
        asked = query
        const hits = await searchMemories(
          { database, embedder, log },
          { business: tenant, user_id },
          { business_id: tenant, user_id, run_id: null },
          { text: textOf(), limit: 10 },
          new AbortController().signal,
        )
        return hits.map(({ id }) => id)
      }
    const byVector = searchFor(() => '?')
    const byBoth = searchFor(() => someWords(8).join(' '))
    const figures = {
      ...(await measure(place, memories, owned, byVector)),
      ...(await measureWords(place, byBoth)),
    }
    await database.close()
    return figures
  }

/** The trap: the index gives its few nearest of all users, and the filter comes after. */
const filtered = async (
  place: Place,
  sql: Sql,
  kind: 'halfvec' | 'vector',
  all: number,
  owned: readonly number[],
): Promise<Figures> => {
  const memories = someMemories(place, all, owned)
  await sql.query(`CREATE TEMP TABLE trap (user_id text, memory_id text, embedding ${kind}(${size}))`)
  await inBatches(
    memories,
    (memory) => ({ id: memory.id, user: memory.user, v: textOf(memory) }),
    (rows) =>
      sql.query(
        `INSERT INTO trap SELECT "user", id, v::${kind} FROM json_to_recordset($1::json) AS r (id text, "user" text, v text)`,
        [rows],
      ),
  )
  await sql.query(`CREATE INDEX ON trap USING hnsw (embedding ${kind}_ip_ops)`)
  await sql.query('ANALYZE trap')
  // without it the planner sorts all of who has few
  await sql.query('SET enable_sort = off')
  return measure(place, memories, owned, async (user, query) => {
    const { rows } = await sql.query<{ memory_id: string }>(
      `SELECT memory_id FROM trap WHERE user_id = $1 ORDER BY embedding <#> $2::${kind} LIMIT 10`,
      [user, toVectorText(query)],
    )
    return rows.map(({ memory_id }) => memory_id)
  })
}

const filteredPostgres =
  (all: number): Variant =>
  async (place) => {
    const client = await connect(place)
    await client.query(`SET maintenance_work_mem = '512MB'`)
    const sql: Sql = {
      query: async (text, values = []) => ({ rows: (await client.query(text, Object.values(values))).rows }),
    }
    const figures = await filtered(place, sql, 'halfvec', all, owned)
    await client.end()
    return figures
  }

/** Smaller, and of whole floats: PGlite takes a millisecond and more for each that it puts into this index, and many for halves. */
const filteredPglite =
  (all: number, some: readonly number[]): Variant =>
  async (place) => {
    const database = await openEmbedded(place)
    const figures = await filtered(place, database, 'vector', all, some)
    await database.close()
    return figures
  }

const memory: Case = {
  about:
    'the ten nearest memories of a user with 500, 5,000 or 20,000, 768 numbers each, against brute force',
  ours: {
    'Postgres, of 50000': ours(50_000, ({ config }) => openDatabase(config, log)),
    'PGlite, of 26000': ours(26_000, openEmbedded),
  },
  beside: {
    'HNSW with a filter, Postgres, of 50000': filteredPostgres(50_000),
    'HNSW with a filter, PGlite, of 6000': filteredPglite(6000, [500, 5000]),
  },
}

export default memory
