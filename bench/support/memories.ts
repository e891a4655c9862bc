import { hashSpace, normalizeVector } from '../../src/features/user-memory/policy/hash-embedding.ts'
import { toVectorText } from '../../src/features/user-memory/store/search.ts'
import { computeSignature } from '../../src/features/user-memory/store/vector-signature.ts'
import type { Sql } from '../../src/state/ports/sql.ts'
import type { Place } from './place.ts'

/** Numbers of a vector. */
export const size = 768
const centreCount = 200
const atOnce = 500

const noise = (): number => Math.random() - 0.5
const centres = Array.from({ length: centreCount }, () => Array.from({ length: size }, noise))
/** Near one of many centres, as texts lie near their topics. */
export const someVector = (): number[] => {
  const centre = centres[Math.floor(Math.random() * centreCount)] ?? []
  return normalizeVector(centre.map((number) => number + 1.2 * noise()))
}
/** Some in every tenth memory, some in one of a thousand; what is more frequent is no word to look for. */
export const someWords = (count: number): string[] => [
  ...new Set(Array.from({ length: count }, () => `w${Math.floor(30 * 100 ** Math.random())}`)),
]

export type Memory = { id: string; user: string; vector: Float32Array }

/** `owned`: how many each user has who is measured; what is left of `all` is of 99 others. In the order of chance. */
export const someMemories = (place: Place, all: number, owned: readonly number[]): Memory[] => {
  const users = owned.flatMap((count) =>
    Array.from({ length: place.count(count) }, () => `measured ${count}`),
  )
  const others = Array.from({ length: Math.max(0, place.count(all) - users.length) }, (_, n) => `u${n % 99}`)
  const order = [...users, ...others].map((user) => ({ user, at: Math.random() }))
  return order
    .toSorted((a, b) => a.at - b.at)
    .map(({ user }, n) => ({ id: `m${n}`, user, vector: Float32Array.from(someVector()) }))
}

/** Makes one batch ready while the one before is written. */
export const inBatches = async <Row>(
  memories: readonly Memory[],
  rowOf: (memory: Memory) => Row,
  write: (rows: string) => Promise<unknown>,
): Promise<void> => {
  let writing: Promise<unknown> = Promise.resolve()
  for (let at = 0; at < memories.length; at += atOnce) {
    const rows = JSON.stringify(memories.slice(at, at + atOnce).map(rowOf))
    await writing
    writing = write(rows)
  }
  await writing
}

export const textOf = ({ vector }: Memory): string => toVectorText([...vector])

export const tenant = 'default'
export const memoryTables = ['memories', 'memory_words', 'memory_vectors']
export const turnTables = ['sessions', 'turns', 'turn_words', 'turn_vectors']
/** The space of the turns: they have vectors of an embedding model only. */
export const turnSpace = 'bench'

/** Writes each with twenty words and its vector, by `statement`, whose rows are `g`. */
const fill = async (sql: Sql, memories: readonly Memory[], statement: string): Promise<void> => {
  await sql.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT DO NOTHING', [tenant])
  await inBatches(
    memories,
    (memory) => ({
      id: memory.id,
      user: memory.user,
      w: someWords(20),
      v: textOf(memory),
      s: computeSignature([...memory.vector]),
    }),
    (rows) =>
      sql.query(
        `WITH g AS (SELECT * FROM json_to_recordset($1::json) AS r (id text, "user" text, w json, v text, s text)), ${statement}`,
        [rows],
      ),
  )
}

const words = 'array_to_tsvector(ARRAY(SELECT json_array_elements_text(w)))'

export const fillMemories = (sql: Sql, memories: readonly Memory[]): Promise<void> =>
  fill(
    sql,
    memories,
    `m AS (
       INSERT INTO memories (tenant, user_id, memory_id, kind, content, origin, trusted, words, space, signature)
       SELECT '${tenant}', "user", id, 'fact', w::text, 'user', true, ${words}, '${hashSpace}', s::bit varying FROM g)
     INSERT INTO memory_vectors (tenant, user_id, memory_id, space, embedding)
     SELECT '${tenant}', "user", id, '${hashSpace}', v::halfvec FROM g`,
  )

/** The same as turns, each of a session of its own. */
export const fillTurns = (sql: Sql, memories: readonly Memory[]): Promise<void> =>
  fill(
    sql,
    memories,
    `s AS (INSERT INTO sessions (tenant, session_id, user_id) SELECT '${tenant}', id, "user" FROM g), t AS (
       INSERT INTO turns (tenant, session_id, turn, last_turn, user_id, content, words, space, signature, said_at)
       SELECT '${tenant}', id, 1, 1, "user", w::text, ${words}, '${turnSpace}', s::bit varying, clock_timestamp() FROM g
       RETURNING user_id, number, session_id, said_at)
     INSERT INTO turn_vectors (tenant, user_id, number, session_id, said_at, space, embedding)
     SELECT '${tenant}', user_id, number, session_id, said_at, '${turnSpace}', v::halfvec FROM t JOIN g ON id = session_id`,
  )
