import type { Database } from '../infra/database/database.ts'
import { isFreeBlobSql } from './blobs/blobs.ts'

/** Rows that one pass reads at most. */
const batchSize = 500

/**
 * Deletes what files leave and no session holds, older than `days`: extracted contents, uploaded files that no run names, and
 * blobs (of deleted sessions, of requests that were never admitted). A bounded batch at each pass.
 */
export const createFilesSweep = (database: Database, days: number): (() => Promise<void>) => {
  /** After which the next pass continues; null: at the oldest. */
  let position: BlobRow | null = null
  return async () => {
    for (const statement of [preparedStatement, filesStatement]) await database.query(statement, [days])
    position = await dropBlobs(database, days, position)
  }
}

/** The content of files is extracted again when it is needed. */
const preparedStatement = `
  DELETE FROM prepared_files WHERE ctid = ANY(ARRAY(SELECT ctid FROM prepared_files
    WHERE created_at < clock_timestamp() - $1::int * interval '1 day' ORDER BY created_at LIMIT ${batchSize}))`

/** Complete or not. The age is compared again once the row is locked: a run that names it renews it. */
const filesStatement = `
  DELETE FROM files WHERE touched_at < clock_timestamp() - $1::int * interval '1 day' AND (tenant, file_id) IN (
    SELECT tenant, file_id FROM files f WHERE NOT named AND touched_at < clock_timestamp() - $1::int * interval '1 day'
      AND NOT EXISTS (SELECT FROM blob_uses u WHERE u.tenant = f.tenant AND u.sha256 = f.sha256)
    ORDER BY touched_at LIMIT 50)`

type BlobRow = { at: string; tenant: string; sha256: string; held: boolean }

/** Scans the blobs by age: most old ones are held, so each pass continues after the one before. */
const blobsStatement = `
  SELECT b.created_at::text AS at, b.tenant, b.sha256, EXISTS (
    SELECT FROM blob_uses u JOIN sessions s ON s.tenant = u.tenant AND s.session_id = u.session_id
    WHERE u.tenant = b.tenant AND u.sha256 = b.sha256)
    OR EXISTS (SELECT FROM files f WHERE f.tenant = b.tenant AND f.sha256 = b.sha256) AS held
  FROM blobs b WHERE b.created_at < clock_timestamp() - $1::int * interval '1 day'
    AND ($2::timestamptz IS NULL OR (b.created_at, b.tenant, b.sha256) > ($2::timestamptz, $3::text, $4::text))
  ORDER BY b.created_at, b.tenant, b.sha256 LIMIT ${batchSize}`

const dropBlobs = async (database: Database, days: number, from: BlobRow | null): Promise<BlobRow | null> => {
  const { rows } = await database.query<BlobRow>(blobsStatement, [
    days,
    from?.at ?? null,
    from?.tenant ?? '',
    from?.sha256 ?? '',
  ])
  const free = rows.filter(({ held }) => !held).map(({ tenant, sha256 }) => ({ tenant, sha256 }))
  if (free.length > 0) await dropUnheldBlobs(database, days, JSON.stringify(free))
  return rows.length < batchSize ? null : (rows.at(-1) ?? null)
}

const listedBlobsSql = 'SELECT tenant, sha256 FROM json_to_recordset($1::json) AS f(tenant text, sha256 text)'

/** Skips a blob that was stored again meanwhile, which is young, and one that is being stored, which is locked. */
const dropUnheldBlobs = (database: Database, days: number, free: string): Promise<void> =>
  database.transaction(async (sql) => {
    const locked = await sql.query<{ tenant: string; sha256: string }>(
      `SELECT tenant, sha256 FROM blobs WHERE (tenant, sha256) IN (${listedBlobsSql})
         AND created_at < clock_timestamp() - $2::int * interval '1 day' ORDER BY tenant, sha256 FOR UPDATE SKIP LOCKED`,
      [free, days],
    )
    const sure = JSON.stringify(locked.rows)
    await sql.query(
      `DELETE FROM blob_uses u WHERE (tenant, sha256) IN (${listedBlobsSql})
         AND NOT EXISTS (SELECT FROM sessions s WHERE s.tenant = u.tenant AND s.session_id = u.session_id)`,
      [sure],
    )
    await sql.query(
      `DELETE FROM blobs b WHERE (tenant, sha256) IN (${listedBlobsSql}) AND ${isFreeBlobSql}`,
      [sure],
    )
  })
