import { maxSessionQueue } from '../../engine/runs/queue-caps.ts'
import type { Database } from '../../infra/database/database.ts'
import type { JobOutcome } from '../../infra/queue/job-outcome.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import { toLeaseSql } from './intake-lease.ts'

/** A job that must wait, and why; after `after_ms` it is tried again. */
type JobToHold = {
  session_id: string
  job_id: string
  data: string
  data_hash: string
  errors: FieldError[]
  attempts: number
  after_ms: number
}

/** A held job as it is tried again. */
type HeldJob = { seq: number; job_id: string; data: string; data_hash: string; attempts: number }
/** The first held job of a session that is due; `attempts` counts this one. */
export type DueSession = { seq: number; tenant: string; session_id: string; attempts: number }
/** A held job that waited for longer than its business lets runs wait. */
type ExpiredJob = Omit<HeldJob, 'attempts'> &
  Pick<DueSession, 'tenant' | 'session_id'> & { errors: FieldError[] }

const later = (parameter: string): string =>
  `clock_timestamp() + ${parameter}::bigint * interval '1 millisecond'`

/** Between two looks at a session while a leader works on it: another one begins after that. */
const claimMs = 2000
/** How many sessions of a business are tried at once. */
export const maxDueOfBusiness = 8
/** How much data of a session is tried at once. */
const maxBytes = 4 * 1024 * 1024

/** As many jobs of each business as are due, so that none waits for the flood of another. */
const claimStatement = `
  WITH RECURSIVE ${toLeaseSql('$1')}, business AS (
    (SELECT tenant FROM held_jobs WHERE outcome IS NULL AND look_at IS NOT NULL ORDER BY tenant LIMIT 1)
    UNION ALL SELECT (SELECT h.tenant FROM held_jobs h WHERE h.outcome IS NULL AND h.look_at IS NOT NULL AND h.tenant > b.tenant
      ORDER BY h.tenant LIMIT 1) FROM business b WHERE b.tenant IS NOT NULL
  ), due AS (
    SELECT d.seq FROM business b CROSS JOIN LATERAL (
      SELECT seq, look_at FROM held_jobs h WHERE h.tenant = b.tenant AND h.outcome IS NULL AND h.look_at <= clock_timestamp()
      ORDER BY h.look_at LIMIT ${maxDueOfBusiness}) d ORDER BY d.look_at LIMIT 64
  )
  UPDATE held_jobs SET attempts = attempts + 1, look_at = ${later(String(claimMs))}
  WHERE seq IN (SELECT seq FROM due) AND EXISTS (SELECT FROM lease) RETURNING seq, tenant, session_id, attempts`

/** Of a full session none, else at most as many as it has permits. */
const readStatement = `
  SELECT h.seq, h.job_id, h.data::text AS data, h.data_hash, h.attempts FROM (
    SELECT *, row_number() OVER (ORDER BY seq) AS place, sum(octet_length(data::text)) OVER (ORDER BY seq) AS bytes
    FROM (SELECT * FROM held_jobs WHERE tenant = $1 AND session_id = $2 AND outcome IS NULL ORDER BY seq LIMIT 64) s
  ) h CROSS JOIN (SELECT ${maxSessionQueue} - count(*) AS permits FROM (SELECT FROM runs r
    WHERE r.tenant = $1 AND r.session_id = $2 AND r.status = 'queued' ORDER BY r.turn LIMIT ${maxSessionQueue}) q) c
  WHERE c.permits >= h.place AND (h.place = 1 OR h.bytes <= ${maxBytes}) ORDER BY h.seq`

const holdStatement = `
  WITH ${toLeaseSql('$2')}, job AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY session_id ORDER BY place) AS rank FROM json_to_recordset($3::json) AS j(
      place int, session_id text, job_id text, data text, data_hash text, errors json, attempts int, after_ms bigint)
  )
  INSERT INTO held_jobs (tenant, session_id, job_id, data, data_hash, faults, attempts, look_at, expires_at)
  SELECT $1, j.session_id, j.job_id, j.data::json, j.data_hash, j.errors, j.attempts,
    CASE WHEN j.rank = 1 AND NOT EXISTS (SELECT FROM held_jobs h WHERE h.tenant = $1 AND h.session_id = j.session_id AND h.outcome IS NULL)
      THEN ${later('j.after_ms')} END,
    clock_timestamp() + (SELECT queue_ttl FROM businesses WHERE tenant = $1)
  FROM job j WHERE EXISTS (SELECT FROM lease) ORDER BY j.place
  ON CONFLICT DO NOTHING RETURNING job_id, expires_at`

const advanceStatement = `
  WITH ${toLeaseSql('$3')}, done AS MATERIALIZED (
    SELECT * FROM json_to_recordset($4::json) AS d(seq bigint, outcome json)
  ), settled AS (
    UPDATE held_jobs h SET outcome = done.outcome, data = 'null', look_at = clock_timestamp()
    FROM done WHERE h.seq = done.seq AND EXISTS (SELECT FROM lease)
  )
  UPDATE held_jobs SET look_at = ${later('$5')}, faults = COALESCE($6::json, faults), attempts = CASE WHEN $7 THEN attempts ELSE 0 END
  WHERE EXISTS (SELECT FROM lease) AND seq = (SELECT min(h.seq) FROM held_jobs h WHERE h.tenant = $1 AND h.session_id = $2
    AND h.outcome IS NULL AND h.seq NOT IN (SELECT seq FROM done))`

/** Holds jobs of a business in this order, each behind those of its session. Returns until when, by job; without the lease none. */
export const holdJobs = async (
  database: Database,
  businessId: string,
  epoch: number,
  jobs: readonly JobToHold[],
): Promise<Map<string, Date>> => {
  const rows = JSON.stringify(jobs.map((job, place) => ({ place, ...job })))
  const held = await database.query<{ job_id: string; expires_at: Date }>(holdStatement, [
    businessId,
    epoch,
    rows,
  ])
  return new Map(held.rows.map(({ job_id, expires_at }) => [job_id, expires_at]))
}

/** The sessions whose first held job is due. Each is counted as a try before anything of it is read. */
export const claimDueSessions = async (database: Database, epoch: number): Promise<DueSession[]> =>
  (await database.query<DueSession>(claimStatement, [epoch])).rows

/** The first held jobs of a session, as many as it can take now. */
export const readHeldJobs = async (
  database: Database,
  { tenant, session_id }: DueSession,
): Promise<HeldJob[]> => (await database.query<HeldJob>(readStatement, [tenant, session_id])).rows

/** Ends held jobs of a session with their outcomes; the first of the others is tried after `afterMs`. */
export const advanceSession = async (
  database: Database,
  epoch: number,
  { tenant, session_id }: Pick<DueSession, 'tenant' | 'session_id'>,
  done: readonly { seq: number; outcome: JobOutcome }[],
  wait: { afterMs: number; errors: FieldError[]; isTry: boolean } | null,
): Promise<void> => {
  await database.query(advanceStatement, [
    tenant,
    session_id,
    epoch,
    JSON.stringify(done),
    wait?.afterMs ?? 0,
    wait && JSON.stringify(wait.errors),
    wait?.isTry ?? false,
  ])
}

/** Those whose time is over, some at a time. */
export const listExpiredJobs = async (database: Database): Promise<ExpiredJob[]> =>
  (
    await database.query<ExpiredJob>(
      `SELECT seq, tenant, session_id, job_id, data::text AS data, data_hash, faults AS errors FROM held_jobs
       WHERE outcome IS NULL AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT 32`,
    )
  ).rows

/** Those with an outcome whose jobs wait in Redis, some at a time; each again after half a minute, until it is forgotten. */
export const claimSettledJobs = async (database: Database): Promise<Pick<HeldJob, 'seq' | 'job_id'>[]> =>
  (
    await database.query<Pick<HeldJob, 'seq' | 'job_id'>>(
      `UPDATE held_jobs SET look_at = ${later('30000')} WHERE seq IN (SELECT seq FROM held_jobs
         WHERE outcome IS NOT NULL AND look_at <= clock_timestamp() ORDER BY look_at LIMIT 256) RETURNING seq, job_id`,
    )
  ).rows

/** Deletes rows whose jobs have ended in Redis too. */
export const forgetHeldJobs = async (database: Database, seqs: readonly number[]): Promise<void> => {
  if (seqs.length === 0) return
  await database.query(
    'DELETE FROM held_jobs WHERE seq IN (SELECT json_array_elements_text($1::json)::bigint) AND outcome IS NOT NULL',
    [JSON.stringify(seqs)],
  )
}
