import { type RunKey, readCount } from '../../infra/database/database.ts'
import { sha256 } from '../../infra/lib/ids.ts'
import type { Blobs } from '../../state/ports/blobs.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { readBlob } from './blob-content.ts'

/**
 * Stores bytes under their hash, shared by the sessions of a business. The same statement records which session holds the
 * blob; blobs that no session holds may be deleted. Storing an existing blob renews its age and locks its row against
 * deletion.
 */
export const storeBlobStatement = `
  INSERT INTO blobs (tenant, sha256, bytes) VALUES ($1, $2, $3)
  ON CONFLICT (tenant, sha256) DO UPDATE SET created_at = clock_timestamp()`

/** Stores bytes for the session of a run and returns their SHA-256 hash in hexadecimal. */
export const storeRunBlob = async (
  sql: Sql,
  { tenant, run_id }: RunKey,
  bytes: Uint8Array,
): Promise<string> => {
  const hash = sha256(bytes)
  await sql.query(
    `WITH stored AS (${storeBlobStatement})
     INSERT INTO blob_uses (tenant, sha256, session_id)
     SELECT tenant, $2, session_id FROM runs WHERE tenant = $1 AND run_id = $4 ON CONFLICT DO NOTHING`,
    [tenant, hash, bytes, run_id],
  )
  return hash
}

/** A session that holds a blob. */
export type BlobUse = { sha256: string; session_id: string }

/** Records that sessions hold blobs, which the same transaction has stored. */
export const holdSessionBlobs = async (
  sql: Sql,
  businessId: string,
  uses: readonly BlobUse[],
): Promise<void> => {
  if (uses.length === 0) return
  await sql.query(
    `INSERT INTO blob_uses (tenant, sha256, session_id)
     SELECT DISTINCT $1, sha256, session_id FROM json_to_recordset($2::json) AS u(sha256 text, session_id text)
     ON CONFLICT DO NOTHING`,
    [businessId, JSON.stringify(uses)],
  )
}

/**
 * Renews the age of existing blobs and records that a run's session holds them; returns how many exist. The row locks keep
 * a concurrent deletion of another session from deleting them.
 */
export const holdStoredBlobs = (
  sql: Sql,
  { tenant, run_id }: RunKey,
  hashes: readonly string[],
): Promise<number> =>
  readCount(
    sql,
    `WITH existing AS (
       SELECT sha256 FROM blobs WHERE tenant = $1 AND sha256 = ANY(ARRAY(SELECT json_array_elements_text($3::json)))
       ORDER BY sha256 FOR UPDATE
     ), renewed AS (
       UPDATE blobs b SET created_at = clock_timestamp() FROM existing
       WHERE b.tenant = $1 AND b.sha256 = existing.sha256
       RETURNING b.sha256
     ), held AS (
       INSERT INTO blob_uses (tenant, sha256, session_id)
       SELECT r.tenant, renewed.sha256, r.session_id FROM runs r, renewed WHERE r.tenant = $1 AND r.run_id = $2
       ON CONFLICT DO NOTHING
     )
     SELECT count(*)::int AS count FROM renewed`,
    [tenant, run_id, JSON.stringify(hashes)],
  )

/** A fork holds all blobs of its session, also later ones than the forked action, because its texts may name any. */
export const copyBlobHolds = async (
  sql: Sql,
  businessId: string,
  from: string,
  to: string,
): Promise<void> => {
  await sql.query(
    `INSERT INTO blob_uses (tenant, sha256, session_id)
     SELECT tenant, sha256, $3 FROM blob_uses WHERE tenant = $1 AND session_id = $2`,
    [businessId, from, to],
  )
}

/**
 * Releases the blobs of a session and deletes those that no other session holds, with the files prepared from them and the
 * uploaded files that runs have named. Runs inside the caller's transaction.
 */
export const releaseSessionBlobs = async (sql: Sql, businessId: string, sessionId: string): Promise<void> => {
  const { rows } = await sql.query<{ sha256: string }>(
    'DELETE FROM blob_uses WHERE tenant = $1 AND session_id = $2 RETURNING sha256',
    [businessId, sessionId],
  )
  const hashes = rows.map((row) => row.sha256)
  await deleteFreeBlobs(sql, businessId, hashes, (freed) =>
    sql.query(
      `DELETE FROM files f WHERE tenant = $1 AND named AND sha256 = ANY(ARRAY(SELECT json_array_elements_text($2::json)))
         AND NOT EXISTS (SELECT FROM blob_uses u WHERE u.tenant = f.tenant AND u.sha256 = f.sha256)`,
      [businessId, freed],
    ),
  )
}

/** Where no session and no uploaded file has the bytes of a blob `b`. */
export const isFreeBlobSql = `NOT EXISTS (SELECT FROM blob_uses u WHERE u.tenant = b.tenant AND u.sha256 = b.sha256)
  AND NOT EXISTS (SELECT FROM files f WHERE f.tenant = b.tenant AND f.sha256 = b.sha256)`

/**
 * Of these blobs, deletes those that are free once `release` has deleted what else it wants, with the files prepared from
 * them. `release` runs while the blobs are locked.
 */
export const deleteFreeBlobs = async (
  sql: Sql,
  businessId: string,
  candidates: readonly string[],
  release: (hashes: string) => Promise<unknown>,
): Promise<void> => {
  if (candidates.length === 0) return
  const hashes = JSON.stringify(candidates)
  const named = 'tenant = $1 AND sha256 = ANY(ARRAY(SELECT json_array_elements_text($2::json)))'
  // locked first and in one order: a concurrent store has then recorded its hold, and the next statement sees it
  await sql.query(`SELECT 1 AS locked FROM blobs WHERE ${named} ORDER BY sha256 FOR UPDATE`, [
    businessId,
    hashes,
  ])
  await release(hashes)
  await sql.query(
    `WITH gone AS (
       DELETE FROM blobs b WHERE ${named} AND ${isFreeBlobSql} RETURNING sha256
     )
     DELETE FROM prepared_files p
     WHERE tenant = $1 AND (sha256 IN (SELECT sha256 FROM gone) OR blobs && ARRAY(SELECT sha256 FROM gone))`,
    [businessId, hashes],
  )
}

/** The blobs of a run's session. */
export const createBlobs = (sql: Sql, run: RunKey): Blobs => ({
  read: (hash) => readBlob(sql, run, hash),
  store: (bytes) => storeRunBlob(sql, run, bytes),
})
