import type { Sql } from '../../../state/ports.ts'
import { one } from '../../database/database.ts'
import type { Standing } from '../call-ports.ts'

/** What all processes share of keys and endpoints that failed: table model_health. Times are the database's own. */

export type Subject = 'key' | 'endpoint'
export type LastError = { code: string; message: string; at: string }
export type HealthRow = {
  subject: Subject
  subject_id: string
  state: Standing['state']
  failures: number
  /** Milliseconds until it may be tried. */
  left_ms: number
}
export type Failure = {
  subject: Subject
  id: string
  state: 'cooling' | 'disabled'
  forMs: number
  /** Asked for by the vendor, so that it also prolongs what is closed already. */
  asked: boolean
  error: LastError
}

const columns = `subject, subject_id, state, failures,
  greatest(0, extract(epoch FROM until - clock_timestamp()) * 1000)::float8 AS left_ms`

export const readUnwell = async (sql: Sql): Promise<HealthRow[]> =>
  (await sql.query<HealthRow>(`SELECT ${columns} FROM model_health WHERE state <> 'healthy'`)).rows

/**
 * A failure of an ordinary call, or of the half-open one (`isProbe`). Many calls fail together: the first one closes
 * the subject, the others count for nothing, but for a longer wait that the vendor asks for and for a refusal.
 */
export const writeFailure = (sql: Sql, failure: Failure, isProbe: boolean): Promise<HealthRow | null> =>
  one<HealthRow>(
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
      failure.asked,
    ],
  )

/** Takes the one half-open call; it lapses after `forMs`, in case that its process dies. False: it is taken, or not due. */
export const writeClaim = async (sql: Sql, subject: Subject, id: string, forMs: number): Promise<boolean> => {
  const { rows } = await sql.query(
    `UPDATE model_health SET since = CASE WHEN state = 'probing' THEN since ELSE clock_timestamp() END,
       state = 'probing', until = clock_timestamp() + $3 * interval '1 ms', updated_at = clock_timestamp()
     WHERE subject = $1 AND subject_id = $2 AND state <> 'healthy' AND until <= clock_timestamp() RETURNING 1`,
    [subject, id, forMs],
  )
  return rows.length > 0
}

/** `anyway`: whatever it was; else only from its half-open call. */
export const writeHealthy = async (
  sql: Sql,
  subject: Subject,
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

/** A half-open call that told nothing: the next one may go at once. */
export const writeReleased = async (sql: Sql, subject: Subject, id: string): Promise<void> => {
  await sql.query(
    `UPDATE model_health SET state = 'cooling', until = clock_timestamp(), updated_at = clock_timestamp()
     WHERE subject = $1 AND subject_id = $2 AND state = 'probing'`,
    [subject, id],
  )
}
