import { hashSpace } from '../policy/hash-embedding.ts'
import type { MemoryEmbedder } from './embedder.ts'
import { embedStaleRows, toStaleStatement } from './reembed.ts'
import type { MemoryServices } from './search.ts'
import { calibrateBySentences, isCalibrated, unrelatedSentences } from './space-calibration.ts'
import { turnIndex } from './turn-search.ts'

/** Stores the vectors of turns whose content is still the same. */
const turnStatements = {
  stale: toStaleStatement(turnIndex, 'number', 'ORDER BY number DESC'),
  store: `
    WITH given AS (
      SELECT * FROM json_to_recordset($3::json) AS g (number bigint, content text, embedding text, signature text)
    ), moved AS (
      UPDATE turns t SET space = $4, signature = g.signature::bit varying FROM given g
      WHERE t.tenant = $1 AND t.number = g.number AND t.content = g.content
      RETURNING t.number, t.session_id, t.said_at, g.embedding
    )
    INSERT INTO turn_vectors (tenant, user_id, number, session_id, said_at, space, embedding)
    SELECT $1, $2, number, session_id, said_at, $4, embedding::halfvec FROM moved
    ON CONFLICT (number) DO UPDATE SET space = excluded.space, embedding = excluded.embedding`,
}

/** Embeds the sentences that measure a space with the first texts of it. */
const createMeasuringEmbedder = ({ database, embedder }: MemoryServices): MemoryEmbedder => ({
  ...embedder,
  async embed(space, texts, caller, signal) {
    if (await isCalibrated(database, space)) return embedder.embed(space, texts, caller, signal)
    const vectors = await embedder.embed(space, [...texts, ...unrelatedSentences], caller, signal)
    await calibrateBySentences(database, space, vectors.slice(texts.length))
    return vectors.slice(0, texts.length)
  },
})

/** See `embedStaleRows`; only where the registry has an embedding model. Meanwhile turns are found by their words. */
export const embedTurnBatch = async (
  parts: MemoryServices,
  signal: AbortSignal,
  skippedBusinesses: Set<string>,
): Promise<number> =>
  parts.embedder.current() === hashSpace
    ? 0
    : embedStaleRows(
        { ...parts, embedder: createMeasuringEmbedder(parts) },
        turnStatements,
        signal,
        skippedBusinesses,
      )
