import type { Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import { sha256 } from '../ids.ts'

/**
 * Bytes by their content, shared by a business's sessions. Who stores a blob says which session holds it, in the same
 * statement; what no session holds any more can go. Storing what is there makes it young again and locks its row, so that
 * nobody takes away what is being stored.
 */
export const storeBlob = `
  INSERT INTO blobs (tenant, sha256, bytes) VALUES ($1, $2, $3)
  ON CONFLICT (tenant, sha256) DO UPDATE SET created_at = clock_timestamp()`

/** Keeps bytes for the session of a run; gives their hash. */
export const keepBlob = async (
  sql: Sql,
  { tenant, run_id }: { tenant: string; run_id: string },
  bytes: Uint8Array,
): Promise<string> => {
  const hash = sha256(bytes)
  await sql.query(
    `WITH stored AS (${storeBlob})
     INSERT INTO blob_uses (tenant, sha256, session_id)
     SELECT tenant, $2, session_id FROM runs WHERE tenant = $1 AND run_id = $4 ON CONFLICT DO NOTHING`,
    [tenant, hash, bytes, run_id],
  )
  return hash
}

export type BlobUse = { sha256: string; session_id: string }

/** Notes blobs that were stored in the same transaction as held by their sessions. */
export const holdBlobs = async (sql: Sql, tenant: string, uses: readonly BlobUse[]): Promise<void> => {
  if (uses.length === 0) return
  await sql.query(
    `INSERT INTO blob_uses (tenant, sha256, session_id)
     SELECT DISTINCT $1, sha256, session_id FROM json_to_recordset($2::json) AS u(sha256 text, session_id text)
     ON CONFLICT DO NOTHING`,
    [tenant, JSON.stringify(uses)],
  )
}

/** The blobs that texts of an action name: its large result, and files. */
export const blobsNamed = (...texts: readonly string[]): string[] =>
  texts.flatMap((text) =>
    text.includes('blob')
      ? [...text.matchAll(/"(?:blob":"|local_path":"blob:)([0-9a-f]{64})"/g)].map(hashOf)
      : [],
  )

const hashOf = ([, hash = '']: RegExpExecArray): string => hash

/**
 * Makes blobs that are there young again and held by a run's session, whoever stored them; gives how many there are. Their locks keep out who
 * lets go of them meanwhile for a session that is deleted.
 */
export const holdStored = async (
  sql: Sql,
  { tenant, run_id }: { tenant: string; run_id: string },
  hashes: readonly string[],
): Promise<number> => {
  const found = await one<{ there: number }>(
    sql,
    `WITH asked AS (
       SELECT sha256 FROM blobs WHERE tenant = $1 AND sha256 IN (SELECT json_array_elements_text($3::json))
       ORDER BY sha256 FOR UPDATE
     ), young AS (
       UPDATE blobs b SET created_at = clock_timestamp() FROM asked WHERE b.tenant = $1 AND b.sha256 = asked.sha256
       RETURNING b.sha256
     ), held AS (
       INSERT INTO blob_uses (tenant, sha256, session_id)
       SELECT r.tenant, young.sha256, r.session_id FROM runs r, young WHERE r.tenant = $1 AND r.run_id = $2
       ON CONFLICT DO NOTHING
     )
     SELECT count(*)::int AS there FROM young`,
    [tenant, run_id, JSON.stringify(hashes)],
  )
  return found?.there ?? 0
}

/** A fork holds what its session held, also what came after the action: its texts may name any of it. */
export const copyHolds = async (sql: Sql, tenant: string, from: string, to: string): Promise<void> => {
  await sql.query(
    `INSERT INTO blob_uses (tenant, sha256, session_id)
     SELECT tenant, sha256, $3 FROM blob_uses WHERE tenant = $1 AND session_id = $2`,
    [tenant, from, to],
  )
}

/** Lets go of what a session held, and deletes what nobody else holds, with what was found in it. Inside the caller's transaction. */
export const releaseBlobs = async (sql: Sql, tenant: string, sessionId: string): Promise<void> => {
  const { rows } = await sql.query<{ sha256: string }>(
    'DELETE FROM blob_uses WHERE tenant = $1 AND session_id = $2 RETURNING sha256',
    [tenant, sessionId],
  )
  if (rows.length === 0) return
  const hashes = JSON.stringify(rows.map((row) => row.sha256))
  const named = 'tenant = $1 AND sha256 IN (SELECT json_array_elements_text($2::json))'
  // first their locks, in one order: whoever is storing one has then said so, and the next statement sees it
  await sql.query(`SELECT 1 AS there FROM blobs WHERE ${named} ORDER BY sha256 FOR UPDATE`, [tenant, hashes])
  await sql.query(
    `WITH gone AS (
       DELETE FROM blobs b WHERE ${named}
         AND NOT EXISTS (SELECT FROM blob_uses u WHERE u.tenant = b.tenant AND u.sha256 = b.sha256) RETURNING sha256
     )
     DELETE FROM prepared_files p
     WHERE tenant = $1 AND (sha256 IN (SELECT sha256 FROM gone) OR blobs && ARRAY(SELECT sha256 FROM gone))`,
    [tenant, hashes],
  )
}
