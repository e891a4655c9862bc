import { hashSpace } from '../policy/hash-embedding.ts'
import type { MemoryServices } from './search.ts'
import { calibrateBySentences, isCalibrated, unrelatedSentences } from './space-calibration.ts'
import { setTurnVectors } from './turns.ts'
import { asUser } from './user-scope.ts'

type StaleRow = { tenant: string; user_id: string; number: string; content: string }

const batchSize = 64

/** Turns of one user, the first found, that have no vector of the current space; those without any vector first. */
const staleStatement = `
  WITH one AS (
    (SELECT tenant, user_id FROM turns WHERE space < $1 AND tenant NOT IN (SELECT json_array_elements_text($2::json))
     ORDER BY space, tenant LIMIT 1)
    UNION ALL
    (SELECT tenant, user_id FROM turns WHERE space > $1 AND tenant NOT IN (SELECT json_array_elements_text($2::json))
     ORDER BY space, tenant LIMIT 1)
    LIMIT 1
  )
  SELECT t.tenant, t.user_id, t.number, t.content FROM turns t JOIN one USING (tenant, user_id)
  WHERE t.space <> $1 ORDER BY t.number DESC LIMIT ${batchSize}`

/**
 * Embeds one batch of turns in the space of the embedding model, where the registry has one, on the account of their business; returns their
 * number. Meanwhile they are found by their words. Two workers at once do the work twice, without harm. Skips
 * `skippedBusinesses`, and adds a business whose turns cannot be embedded.
 */
export const embedTurnBatch = async (
  { database, embedder }: MemoryServices,
  signal: AbortSignal,
  skippedBusinesses: Set<string>,
): Promise<number> => {
  const space = embedder.current()
  if (space === hashSpace) return 0
  const { rows } = await database.query<StaleRow>(staleStatement, [
    space,
    JSON.stringify([...skippedBusinesses]),
  ])
  const [first] = rows
  if (!first) return 0
  const { tenant: business, user_id } = first
  skippedBusinesses.add(business)
  const caller = { business_id: business, user_id, run_id: null }
  const isMeasured = await isCalibrated(database, space)
  const texts = [...rows.map(({ content }) => content), ...(isMeasured ? [] : unrelatedSentences)]
  const vectors = await embedder.embed(space, texts, caller, signal)
  if (!isMeasured) await calibrateBySentences(database, space, vectors.slice(rows.length))
  await asUser(database, { business, user_id }, async (sql) => {
    const turns = rows.map(({ number, content }, at) => ({ number, content, vector: vectors[at] ?? [] }))
    await setTurnVectors(sql, { business, user_id }, space, turns)
  })
  skippedBusinesses.delete(business)
  return rows.length
}
