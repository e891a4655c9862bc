import { hasRow } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { computeCosine } from '../policy/hash-embedding.ts'

/**
 * Sentences that have nothing to do with each other: the first measure of a space, embedded with the first turns of it, until it
 * holds enough turns to be measured by these.
 */
export const unrelatedSentences: readonly string[] = [
  'The train to Hamburg is forty minutes late today.',
  'My tomatoes have brown spots on their leaves.',
  'How do I sort a list of objects by two keys?',
  'The court postponed the hearing until autumn.',
  'She has played the cello since she was six.',
  'Which vaccine does a newborn calf need?',
  'The invoice of March was paid twice by mistake.',
  'Penguins cannot fly, but they swim very well.',
  'We repainted the fence in a dark green.',
  'The interest of our loan rises to four percent.',
  'Does this phone support two SIM cards?',
  'The soup needs more salt and a bay leaf.',
]

const minPairs = 500
/** Turns whose pairs are compared: 64 give about two thousand. They are of the latest ones. */
const [sampled, latest] = [64, 5000]

/** The mean and the deviation of the similarity of these vectors, pair by pair. */
const measurePairs = (vectors: readonly (readonly number[])[]) => {
  const similarities = vectors.flatMap((one, at) =>
    vectors.slice(0, at).map((other) => computeCosine(one, other)),
  )
  const mean = similarities.reduce((sum, value) => sum + value, 0) / similarities.length
  const variance = similarities.reduce((sum, value) => sum + (value - mean) ** 2, 0) / similarities.length
  return { mean, deviation: Math.sqrt(variance), pairs: similarities.length }
}

const storeStatement = `
  INSERT INTO memory_spaces (space, dimensions, pair_mean, pair_deviation, pairs) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (space) DO UPDATE SET pair_mean = excluded.pair_mean, pair_deviation = excluded.pair_deviation, pairs = excluded.pairs`

/** Whether a space has been measured. */
export const isCalibrated = (sql: Sql, space: string): Promise<boolean> =>
  hasRow(sql, 'SELECT 1 AS measured FROM memory_spaces WHERE space = $1 AND pairs > 0', [space])

/** Measures a space by the vectors of `unrelatedSentences`. */
export const calibrateBySentences = async (
  sql: Sql,
  space: string,
  vectors: readonly (readonly number[])[],
): Promise<void> => {
  const { mean, deviation, pairs } = measurePairs(vectors)
  await sql.query(storeStatement, [space, vectors[0]?.length ?? 1, mean, deviation, pairs])
}

/**
 * Measures a space by pairs of its latest turns, in an order that depends on nothing but their numbers, once there are enough.
 * Those of one user resemble each other: pairs of different users are measured once, and until there are enough of these, pairs
 * of different sessions again and again. Only the mean and the deviation are kept.
 */
export const calibrateByTurns = async (sql: Sql, space: string): Promise<void> => {
  await sql.query(
    `WITH latest AS (SELECT * FROM turn_vectors WHERE space = $1 ORDER BY number DESC LIMIT ${latest}),
     sample AS MATERIALIZED (SELECT * FROM latest ORDER BY hashint8(number) LIMIT ${sampled}),
     measured AS (
       SELECT avg(-(a.embedding <#> b.embedding)) AS mean, stddev_pop(-(a.embedding <#> b.embedding)) AS deviation, count(*) AS pairs,
         (a.tenant, a.user_id) <> (b.tenant, b.user_id) AS are_of_two
       FROM sample a JOIN sample b ON a.number < b.number AND (a.tenant, a.session_id) <> (b.tenant, b.session_id)
       GROUP BY are_of_two HAVING count(*) >= ${minPairs} ORDER BY are_of_two DESC LIMIT 1
     )
     UPDATE memory_spaces s SET pair_mean = m.mean, pair_deviation = m.deviation, pairs = CASE WHEN are_of_two THEN m.pairs ELSE 1 END
     FROM measured m WHERE s.space = $1 AND s.pairs < ${minPairs} AND s.pair_mean IS DISTINCT FROM m.mean::real`,
    [space],
  )
}
