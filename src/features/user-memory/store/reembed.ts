import { type MemoryServices, memoryIndex, toVectorText, type VectorIndex } from './search.ts'
import { asUser } from './user-scope.ts'
import { computeSignature } from './vector-signature.ts'

type StaleRow = { tenant: string; user_id: string; content: string }

const batchSize = 64

/** Rows of one user, the first found, that have no vector of the current space; those without any vector first. */
export const toStaleStatement = (
  { rows, live }: Pick<VectorIndex, 'rows' | 'live'>,
  columns: string,
  order = '',
): string => {
  const findOne = (isStale: string) => `(SELECT tenant, user_id FROM ${rows} WHERE ${isStale} AND ${live}
       AND tenant NOT IN (SELECT json_array_elements_text($2::json)) ORDER BY space, tenant LIMIT 1)`
  return `
  WITH one AS (${findOne('space < $1')} UNION ALL ${findOne('space > $1')} LIMIT 1)
  SELECT stale.* FROM one CROSS JOIN LATERAL (SELECT tenant, user_id, content, ${columns} FROM ${rows}
    WHERE tenant = one.tenant AND user_id = one.user_id AND space <> $1 AND ${live} ${order} LIMIT ${batchSize}) stale`
}

/**
 * Embeds one batch of rows in the space of the current embedding model, on the account of their business; returns their
 * number. `store` gets the business, the user, the rows with their vectors, and the space. Two workers at once do the work
 * twice, without harm. Skips `skippedBusinesses`, and adds a business whose rows cannot be embedded.
 */
export const embedStaleRows = async (
  { database, embedder }: MemoryServices,
  { stale, store }: { stale: string; store: string },
  signal: AbortSignal,
  skippedBusinesses: Set<string>,
): Promise<number> => {
  const space = embedder.current()
  const { rows } = await database.query<StaleRow>(stale, [space, JSON.stringify([...skippedBusinesses])])
  const [first] = rows
  if (!first) return 0
  const { tenant: business, user_id } = first
  skippedBusinesses.add(business)
  const caller = { business_id: business, user_id, run_id: null }
  const texts = rows.map(({ content }) => content)
  const vectors = await embedder.embed(space, texts, caller, signal)
  const embedded = rows.map((row, at) => {
    const vector = vectors[at] ?? []
    return { ...row, embedding: toVectorText(vector), signature: computeSignature(vector) }
  })
  await asUser(database, { business, user_id }, (sql) =>
    sql.query(store, [business, user_id, JSON.stringify(embedded), space]),
  )
  skippedBusinesses.delete(business)
  return rows.length
}

const memoryStatements = {
  stale: toStaleStatement(memoryIndex, 'memory_id, space'),
  store: `
    WITH given AS (
      SELECT * FROM json_to_recordset($3::json) AS g (memory_id text, space text, embedding text, signature text)
    ), moved AS (
      UPDATE memories m SET space = $4, signature = g.signature::bit varying FROM given g
      WHERE m.tenant = $1 AND m.memory_id = g.memory_id AND m.space = g.space AND m.superseded_by IS NULL
      RETURNING m.memory_id, g.embedding
    )
    INSERT INTO memory_vectors (tenant, user_id, memory_id, space, embedding)
    SELECT $1, $2, memory_id, $4, embedding::halfvec FROM moved
    ON CONFLICT (tenant, memory_id) DO UPDATE SET space = excluded.space, embedding = excluded.embedding`,
}

/** See `embedStaleRows`. Meanwhile searches match the words of memories, and their old vectors while the old model is registered. */
export const reembedBatch = (
  parts: MemoryServices,
  signal: AbortSignal,
  skippedBusinesses: Set<string> = new Set(),
): Promise<number> => embedStaleRows(parts, memoryStatements, signal, skippedBusinesses)
