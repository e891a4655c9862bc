import { queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { HealthStatus } from '../ports/call-ports.ts'

/** Rows of the table model_health: keys and endpoints that failed. Times are the database's own. */

/** What can be unhealthy. */
export type HealthSubject = 'key' | 'endpoint'
/** The error of the last failed request, for admins. */
export type LastError = { code: string; message: string; at: string }
/** A key or endpoint that is not healthy. */
export type HealthRow = {
  subject: HealthSubject
  subject_id: string
  state: HealthStatus['state']
  failures: number
  /** Milliseconds until it may be tried. */
  left_ms: number
}
/** A failure to write. */
export type HealthFailureRow = {
  subject: HealthSubject
  id: string
  state: 'cooling' | 'disabled'
  forMs: number
  /** The vendor asked for this wait: it also extends one that has begun. */
  vendorRequested: boolean
  error: LastError
}

const columns = `subject, subject_id, state, failures,
  greatest(0, extract(epoch FROM until - clock_timestamp()) * 1000)::float8 AS left_ms`

/** Reads all keys and endpoints that are not healthy. */
export const readUnhealthy = async (sql: Sql): Promise<HealthRow[]> =>
  (await sql.query<HealthRow>(`SELECT ${columns} FROM model_health WHERE state <> 'healthy'`)).rows

/**
 * Writes a failure of an ordinary call or of a probe (`isProbe`). Many calls fail together: the first one closes the
 * subject, the others count only for a longer wait that the vendor asks for and for a refusal of the key. Null: no change.
 */
export const writeFailure = (
  sql: Sql,
  failure: HealthFailureRow,
  isProbe: boolean,
): Promise<HealthRow | null> =>
  queryOne<HealthRow>(
    sql,
    `INSERT INTO model_health AS h (subject, subject_id, state, failures, until, last_error)
     VALUES ($1, $2, $3, 1, clock_timestamp() + $4 * interval '1 ms', $5::json)
     ON CONFLICT (subject, subject_id) DO UPDATE SET
       failures = CASE WHEN h.state = 'healthy' THEN 1 WHEN $6 THEN h.failures + 1 ELSE h.failures END,
       since = CASE WHEN h.state = excluded.state THEN h.since ELSE clock_timestamp() END,
       state = CASE WHEN h.state = 'disabled' AND NOT $6 THEN h.state ELSE excluded.state END,
       until = CASE WHEN $6 OR h.state = 'healthy' THEN excluded.until ELSE greatest(h.until, excluded.until) END,
       last_error = excluded.last_error, updated_at = clock_timestamp()
     WHERE h.state = 'healthy' OR (h.state = 'probing' AND $6)
       OR (h.state = 'cooling' AND (excluded.state = 'disabled' OR $7))
     RETURNING ${columns}`,
    [
      failure.subject,
      failure.id,
      failure.state,
      failure.forMs,
      JSON.stringify(failure.error),
      isProbe,
      failure.vendorRequested,
    ],
  )

/** Claims the one probe; the claim expires after `forMs`, in case its process dies. False: it is taken, or not due. */
export const writeClaim = async (
  sql: Sql,
  subject: HealthSubject,
  id: string,
  forMs: number,
): Promise<boolean> => {
  const { rows } = await sql.query(
    `UPDATE model_health SET since = CASE WHEN state = 'probing' THEN since ELSE clock_timestamp() END,
       state = 'probing', until = clock_timestamp() + $3 * interval '1 ms', updated_at = clock_timestamp()
     WHERE subject = $1 AND subject_id = $2 AND state <> 'healthy' AND until <= clock_timestamp() RETURNING 1`,
    [subject, id, forMs],
  )
  return rows.length > 0
}

/** Writes that a subject is healthy: after its probe, or with `anyway` from any state. */
export const writeHealthy = async (
  sql: Sql,
  subject: HealthSubject,
  id: string,
  anyway: boolean,
): Promise<void> => {
  await sql.query(
    `UPDATE model_health SET state = 'healthy', failures = 0, since = clock_timestamp(), until = NULL,
       updated_at = clock_timestamp()
     WHERE subject = $1 AND subject_id = $2 AND state <> 'healthy' AND (state = 'probing' OR $3)`,
    [subject, id, anyway],
  )
}

/** Ends a probe without a verdict: the next one may start at once. */
export const writeRelease = async (sql: Sql, subject: HealthSubject, id: string): Promise<void> => {
  await sql.query(
    `UPDATE model_health SET state = 'cooling', until = clock_timestamp(), updated_at = clock_timestamp()
     WHERE subject = $1 AND subject_id = $2 AND state = 'probing'`,
    [subject, id],
  )
}
