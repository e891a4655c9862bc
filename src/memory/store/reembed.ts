import { type MemoryServices, toVectorText } from './search.ts'
import { asUser } from './user-scope.ts'
import { computeSignature } from './vector-signature.ts'

type StaleRow = { tenant: string; user_id: string; memory_id: string; content: string; space: string }

const batchSize = 64

/** Memories of one user, the first found, that are not in the current space. */
const staleStatement = `
  WITH one AS (
    (SELECT tenant, user_id FROM memories WHERE space < $1 AND superseded_by IS NULL
       AND tenant NOT IN (SELECT json_array_elements_text($2::json)) ORDER BY space, tenant LIMIT 1)
    UNION ALL
    (SELECT tenant, user_id FROM memories WHERE space > $1 AND superseded_by IS NULL
       AND tenant NOT IN (SELECT json_array_elements_text($2::json)) ORDER BY space, tenant LIMIT 1)
    LIMIT 1
  )
  SELECT m.tenant, m.user_id, m.memory_id, m.content, m.space FROM memories m JOIN one USING (tenant, user_id)
  WHERE m.space <> $1 AND m.superseded_by IS NULL LIMIT ${batchSize}`

/**
 * Embeds one batch of memories in the space of the current embedding model; returns their number. Meanwhile searches match
 * their words, and their old vectors while the old model is registered. Two workers at once do the work twice, without harm.
 * Skips `skippedBusinesses`, and adds a business whose memories cannot be embedded.
 */
export const reembedBatch = async (
  parts: MemoryServices,
  signal: AbortSignal,
  skippedBusinesses: Set<string> = new Set(),
): Promise<number> => {
  const { database, embedder } = parts
  const space = embedder.current()
  const { rows } = await database.query<StaleRow>(staleStatement, [
    space,
    JSON.stringify([...skippedBusinesses]),
  ])
  const [first] = rows
  if (!first) return 0
  const { tenant: business, user_id } = first
  skippedBusinesses.add(business)
  const caller = { business_id: business, user_id, run_id: null }
  const texts = rows.map(({ content }) => content)
  const vectors = await embedder.embed(space, texts, caller, signal)
  const changes = rows.map(({ memory_id, space: before }, at) => ({
    memory_id,
    before,
    embedding: toVectorText(vectors[at] ?? []),
    signature: computeSignature(vectors[at] ?? []),
  }))
  await asUser(database, { business, user_id }, async (sql) => {
    await sql.query(
      `WITH given AS (
         SELECT * FROM json_to_recordset($3::json) AS g (memory_id text, before text, embedding text, signature text)
       ), moved AS (
         UPDATE memories m SET space = $4, signature = g.signature::bit varying FROM given g
         WHERE m.tenant = $1 AND m.memory_id = g.memory_id AND m.space = g.before AND m.superseded_by IS NULL
         RETURNING m.memory_id, g.embedding
       )
       INSERT INTO memory_vectors (tenant, user_id, memory_id, space, embedding)
       SELECT $1, $2, memory_id, $4, embedding::halfvec FROM moved
       ON CONFLICT (tenant, memory_id) DO UPDATE SET space = excluded.space, embedding = excluded.embedding`,
      [business, user_id, JSON.stringify(changes), space],
    )
  })
  skippedBusinesses.delete(business)
  return rows.length
}
