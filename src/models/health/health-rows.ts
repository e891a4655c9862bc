import { hasRow, queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { HealthSubject, SubjectRef } from '../ports/call-ports.ts'
import type { HealthEntry, SeenFailure } from './health-rules.ts'

/** Rows of the table model_health: subjects that failed. Times are the database's own. */

/** The error of the last failed request, for admins. */
export type LastError = { code: string; message: string; at: string }

type Row = {
  subject: HealthSubject
  subject_id: string
  state: HealthEntry['state'] | 'healthy'
  failures: number
  for_all: boolean
  /** `atMs` since 1970. */
  seen: SeenFailure[]
  /** Milliseconds until it may be tried. */
  left_ms: number
  now_ms: number
  version: string
}

/** A subject that is not healthy, its times by our monotonic clock. */
export type KnownSubject = SubjectRef & { entry: HealthEntry }

const columns = `subject, subject_id, state, failures, for_all, seen, updated_at::text AS version,
  greatest(0, extract(epoch FROM until - clock_timestamp()) * 1000)::float8 AS left_ms,
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms`

const toEntry = (
  { state, failures, for_all, seen, left_ms, now_ms }: Row,
  nowMs: number,
): HealthEntry | undefined =>
  state === 'healthy'
    ? undefined
    : {
        state,
        failures,
        forAll: for_all,
        dueAtMs: nowMs + left_ms,
        seen: seen.map((one) => ({ ...one, atMs: nowMs - (now_ms - one.atMs) })),
      }

/** Reads all subjects that are not healthy. */
export const readUnhealthy = async (sql: Sql, nowMs: () => number): Promise<KnownSubject[]> => {
  const { rows } = await sql.query<Row>(`SELECT ${columns} FROM model_health WHERE state <> 'healthy'`)
  return rows.flatMap((row) => {
    const entry = toEntry(row, nowMs())
    return entry ? [{ subject: row.subject, id: row.subject_id, entry }] : []
  })
}

/** What `writeEntry` needs to know: the row's version, undefined without a row, and the database's time, since 1970. */
export type RowVersion = { version: string | undefined; databaseMs: number }

/** A subject as it is now. */
export const readEntry = async (
  sql: Sql,
  { subject, id }: SubjectRef,
  nowMs: () => number,
): Promise<{ entry: HealthEntry | undefined; at: RowVersion }> => {
  const row = await queryOne<Row | (Pick<Row, 'now_ms'> & { version: null })>(
    sql,
    `SELECT ${columns} FROM (SELECT 1) AS one LEFT JOIN model_health ON subject = $1 AND subject_id = $2`,
    [subject, id],
  )
  const at = { version: row?.version ?? undefined, databaseMs: row?.now_ms ?? 0 }
  return { entry: row && row.version !== null ? toEntry(row, nowMs()) : undefined, at }
}

/** Writes a failure. False: another process changed the row since it was read. */
export const writeEntry = (
  sql: Sql,
  { subject, id }: SubjectRef,
  { state, failures, forAll, dueAtMs, seen }: HealthEntry,
  { error, at, nowMs }: { error: LastError; at: RowVersion; nowMs: number },
): Promise<boolean> =>
  hasRow(
    sql,
    `INSERT INTO model_health AS h (subject, subject_id, state, failures, for_all, seen, until, last_error)
     VALUES ($1, $2, $3, $4, $5, $6::json, clock_timestamp() + $7 * interval '1 ms', $8::json)
     ON CONFLICT (subject, subject_id) DO UPDATE SET
       since = CASE WHEN h.state = excluded.state THEN h.since ELSE clock_timestamp() END,
       state = excluded.state, failures = excluded.failures, for_all = excluded.for_all, seen = excluded.seen,
       until = excluded.until, last_error = excluded.last_error, updated_at = clock_timestamp()
     WHERE h.updated_at::text = $9
     RETURNING 1`,
    [
      subject,
      id,
      state,
      failures,
      forAll,
      JSON.stringify(seen.map((one) => ({ ...one, atMs: at.databaseMs - (nowMs - one.atMs) }))),
      dueAtMs - nowMs,
      JSON.stringify(error),
      at.version ?? null,
    ],
  )

/**
 * Claims the probes of all these subjects, or none; the claim expires after `forMs`, in case its process dies. False: one
 * of them is taken, or not due.
 */
export const writeClaim = async (sql: Sql, refs: readonly SubjectRef[], forMs: number): Promise<boolean> => {
  const row = await queryOne<{ claimed: boolean }>(
    sql,
    `WITH named AS (
       SELECT subject, subject_id, until FROM model_health WHERE state <> 'healthy' AND (subject, subject_id) IN (
         SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY subject, subject_id FOR UPDATE
     ), claimed AS (
       UPDATE model_health h SET since = CASE WHEN h.state = 'probing' THEN h.since ELSE clock_timestamp() END,
         state = 'probing', until = clock_timestamp() + $3 * interval '1 ms', updated_at = clock_timestamp()
       FROM named n WHERE h.subject = n.subject AND h.subject_id = n.subject_id
         AND NOT EXISTS (SELECT FROM named WHERE until > clock_timestamp())
     ) SELECT NOT EXISTS (SELECT FROM named WHERE until > clock_timestamp()) AS claimed`,
    [refs.map(({ subject }) => subject), refs.map(({ id }) => id), forMs],
  )
  return row?.claimed === true
}

/** Writes that a subject is healthy: after its probe, or with `anyway` from any state. */
export const writeHealthy = async (sql: Sql, { subject, id }: SubjectRef, anyway: boolean): Promise<void> => {
  await sql.query(
    `UPDATE model_health SET state = 'healthy', failures = 0, seen = '[]', since = clock_timestamp(), until = NULL,
       updated_at = clock_timestamp()
     WHERE subject = $1 AND subject_id = $2 AND state <> 'healthy' AND (state = 'probing' OR $3)`,
    [subject, id, anyway],
  )
}

/** Ends a probe without a verdict: the next one may start at once. */
export const writeRelease = async (sql: Sql, { subject, id }: SubjectRef): Promise<void> => {
  await sql.query(
    `UPDATE model_health SET state = 'cooling', until = clock_timestamp(), updated_at = clock_timestamp()
     WHERE subject = $1 AND subject_id = $2 AND state = 'probing'`,
    [subject, id],
  )
}
