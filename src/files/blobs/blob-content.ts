import { queryOne, type RunKey } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'

/** The bytes of a part of a file, and of a slice of any other blob. */
export const partBytes = 1024 * 1024

/** The size of a blob, and its bytes in slices of 1 MiB. Reading throws where the blob is deleted meanwhile. */
export type BlobContent = { bytes: number; chunks: AsyncIterable<Uint8Array> }

/** Runs one statement: a slow reader holds no transaction between two of them. */
type QueryScope = <Result>(work: (sql: Sql) => Promise<Result>) => Promise<Result>

const sliceStatement = `
  SELECT COALESCE(b.size, octet_length(b.bytes))::int AS size, COALESCE(substring(b.bytes FROM $3::int * ${partBytes} + 1 FOR ${partBytes}),
    (SELECT p.bytes FROM file_parts p WHERE p.tenant = b.tenant AND p.file_id = b.file_id AND p.part = $3::int)) AS bytes
  FROM runs r JOIN blob_uses u ON u.tenant = r.tenant AND u.session_id = r.session_id
  JOIN blobs b ON b.tenant = u.tenant AND b.sha256 = u.sha256
  WHERE r.tenant = $1 AND r.run_id = $2 AND u.sha256 = $4`

/**
 * Opens a blob for a run; null: its session holds none with this hash. That a text names a hash opens nothing. Never more
 * than a slice of the blob is in memory.
 */
export const openBlob = async (
  scope: QueryScope,
  { tenant, run_id }: RunKey,
  hash: string,
): Promise<BlobContent | null> => {
  const readSlice = (at: number) =>
    scope((sql) =>
      queryOne<{ size: number; bytes: Uint8Array | null }>(sql, sliceStatement, [tenant, run_id, at, hash]),
    )
  const first = await readSlice(0)
  if (!first) return null
  async function* readSlices(size: number, slice: Uint8Array | null): AsyncGenerator<Uint8Array> {
    if (slice) yield slice
    for (let at = 1; at * partBytes < size; at++) {
      const next = (await readSlice(at))?.bytes
      if (!next) throw new Error(`blob ${hash} was deleted while it was read`)
      yield next
    }
  }
  return { bytes: first.size, chunks: readSlices(first.size, first.bytes) }
}

/** The bytes of a blob at once, or null. For what is small by its origin: results, texts, descriptions. */
export const readBlob = async (sql: Sql, run: RunKey, hash: string): Promise<Uint8Array | null> => {
  const content = await openBlob((work) => work(sql), run, hash)
  if (!content) return null
  const slices: Uint8Array[] = []
  for await (const slice of content.chunks) slices.push(slice)
  return slices.length === 1 ? (slices[0] ?? null) : Buffer.concat(slices)
}
