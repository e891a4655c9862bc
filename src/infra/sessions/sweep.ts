import type { Sql } from '../../state/ports.ts'
import type { Database } from '../database/database.ts'

/** How long what nobody needs is kept, in days. */
export type Keep = { blobsDays: number; rejectedJobsDays: number }

/** Rows that one pass looks at, at the most. */
const atOnce = 500

/** Where the next pass goes on; null: from the oldest. */
type Place = { at: string; tenant: string; sha256: string } | null

/**
 * Deletes what has outlived its use, a bounded piece at each pass: refused queue jobs, answers of models that could not be
 * read, and blobs that no session holds (of deleted sessions, of requests that were never admitted). Several processes may
 * sweep at once.
 */
export const createSweep = (database: Database, keep: Keep): (() => Promise<void>) => {
  let place: Place = null
  return async () => {
    await dropRejected(database, keep.rejectedJobsDays)
    await dropUnread(database, keep.rejectedJobsDays)
    await dropPrepared(database, keep.blobsDays)
    place = await dropBlobs(database, keep.blobsDays, place)
  }
}

const dropRejected = (sql: Sql, days: number): Promise<unknown> =>
  sql.query(
    `DELETE FROM rejected_jobs WHERE rejected_id = ANY(ARRAY(SELECT rejected_id FROM rejected_jobs
       WHERE received_at < clock_timestamp() - $1::int * interval '1 day' ORDER BY received_at LIMIT ${atOnce}))`,
    [days],
  )

/** They may quote a user, and say neither whom nor of which run. There are a hundred of each model at the most. */
const dropUnread = (sql: Sql, days: number): Promise<unknown> =>
  sql.query(`DELETE FROM unread_answers WHERE at < clock_timestamp() - $1::int * interval '1 day'`, [days])

/** What was found in files is found again when it is needed. */
const dropPrepared = (sql: Sql, days: number): Promise<unknown> =>
  sql.query(
    `DELETE FROM prepared_files WHERE ctid = ANY(ARRAY(SELECT ctid FROM prepared_files
       WHERE created_at < clock_timestamp() - $1::int * interval '1 day' ORDER BY created_at LIMIT ${atOnce}))`,
    [days],
  )

type Looked = { at: string; tenant: string; sha256: string; held: boolean }

/** Walks the blobs by age: most of the old ones are held, and looking at them again and again would find no others. */
const lookStatement = `
  SELECT b.created_at::text AS at, b.tenant, b.sha256, EXISTS (
    SELECT FROM blob_uses u JOIN sessions s ON s.tenant = u.tenant AND s.session_id = u.session_id
    WHERE u.tenant = b.tenant AND u.sha256 = b.sha256) AS held
  FROM blobs b WHERE b.created_at < clock_timestamp() - $1::int * interval '1 day'
    AND ($2::timestamptz IS NULL OR (b.created_at, b.tenant, b.sha256) > ($2::timestamptz, $3::text, $4::text))
  ORDER BY b.created_at, b.tenant, b.sha256 LIMIT ${atOnce}`

const dropBlobs = async (database: Database, days: number, from: Place): Promise<Place> => {
  const { rows } = await database.query<Looked>(lookStatement, [
    days,
    from?.at ?? null,
    from?.tenant ?? '',
    from?.sha256 ?? '',
  ])
  const free = rows.filter(({ held }) => !held).map(({ tenant, sha256 }) => ({ tenant, sha256 }))
  if (free.length > 0) await drop(database, days, JSON.stringify(free))
  const last = rows.length < atOnce ? null : rows.at(-1)
  return last ? { at: last.at, tenant: last.tenant, sha256: last.sha256 } : null
}

const asked = 'SELECT tenant, sha256 FROM json_to_recordset($1::json) AS f(tenant text, sha256 text)'

/** One that was stored again meanwhile is young, and one that is being stored is locked: both are passed over. */
const drop = (database: Database, days: number, free: string): Promise<void> =>
  database.transaction(async (sql) => {
    const locked = await sql.query<{ tenant: string; sha256: string }>(
      `SELECT tenant, sha256 FROM blobs WHERE (tenant, sha256) IN (${asked})
         AND created_at < clock_timestamp() - $2::int * interval '1 day' ORDER BY tenant, sha256 FOR UPDATE SKIP LOCKED`,
      [free, days],
    )
    const sure = JSON.stringify(locked.rows)
    await sql.query(
      `DELETE FROM blob_uses u WHERE (tenant, sha256) IN (${asked})
         AND NOT EXISTS (SELECT FROM sessions s WHERE s.tenant = u.tenant AND s.session_id = u.session_id)`,
      [sure],
    )
    await sql.query(
      `DELETE FROM blobs b WHERE (tenant, sha256) IN (${asked})
         AND NOT EXISTS (SELECT FROM blob_uses u WHERE u.tenant = b.tenant AND u.sha256 = b.sha256)`,
      [sure],
    )
  })
