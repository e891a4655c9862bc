import { asUser } from './scope.ts'
import { type Parts, vectorText } from './search.ts'
import { signatureOf } from './signature.ts'

type Stale = { tenant: string; user_id: string; memory_id: string; content: string; space: string }

const atOnce = 64

/** Those of one user that are not in the space that is wanted, whichever come first. */
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
  WHERE m.space <> $1 AND m.superseded_by IS NULL LIMIT ${atOnce}`

/**
 * Puts one batch of memories into the space of the embedding model that serves now; gives how many. Meanwhile they are found by
 * their words, and by their old vectors while the old model is there. Two who do it at once do it twice, and no harm.
 * `passedOver`: businesses whose turn it is not; one whose memories could not be embedded is among them afterwards.
 */
export const reembed = async (
  parts: Parts,
  signal: AbortSignal,
  passedOver: Set<string> = new Set(),
): Promise<number> => {
  const { database, embedder } = parts
  const space = embedder.current()
  const { rows } = await database.query<Stale>(staleStatement, [space, JSON.stringify([...passedOver])])
  const [first] = rows
  if (!first) return 0
  const { tenant, user_id } = first
  passedOver.add(tenant)
  const caller = { business_id: tenant, user_id, run_id: null }
  const vectors = await embedder.embed(
    space,
    rows.map(({ content }) => content),
    caller,
    signal,
  )
  const changes = rows.map(({ memory_id, space: before }, at) => ({
    memory_id,
    before,
    embedding: vectorText(vectors[at] ?? []),
    signature: signatureOf(vectors[at] ?? []),
  }))
  await asUser(database, { tenant, user_id }, async (sql) => {
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
      [tenant, user_id, JSON.stringify(changes), space],
    )
  })
  passedOver.delete(tenant)
  return rows.length
}
