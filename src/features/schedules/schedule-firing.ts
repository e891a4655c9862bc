import type { Admission } from '../../engine/runs/admission.ts'
import { type Database, hasRow } from '../../infra/database/database.ts'
import { isMasonError, passesSoon, toMasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { findNextTime, listPlannedTimes } from './planned-times.ts'
import type { ScheduledRequest, ScheduleError, ScheduleView } from './schedule-schemas.ts'

/** How many schedules one pass fires together. */
const batchSize = 100
const activeStatement = `SELECT tenant FROM schedules WHERE status = 'active' ORDER BY tenant LIMIT 1`
/** When another worker fires a schedule whose worker did not say what became of it. */
const claimMs = 60_000
/** When a planned time is tried again that was refused for a reason that may pass. */
const retryMs = 30_000
/** Planned times that have passed and are caught up at most. */
const maxCaughtUp = 100
/** With `catch_up: none` a planned time is fired until it is so late. */
const maxLateMs = 5 * 60_000

type ScheduleClaim = Pick<ScheduleView, 'cron' | 'time_zone' | 'catch_up'> & {
  tenant: string
  schedule_id: string
  request: ScheduledRequest
  next_at: Date
  claims: number
  /** The clock of the database. */
  now: Date
}

/** Takes due schedules, businesses in turn, so that ten thousand of one delay those of no other. */
const claimStatement = `
  WITH RECURSIVE business AS (
    (${activeStatement}) UNION ALL
    SELECT (SELECT s.tenant FROM schedules s WHERE s.status = 'active' AND s.tenant > b.tenant ORDER BY s.tenant LIMIT 1) FROM business b WHERE b.tenant IS NOT NULL
  ), candidate AS (
    SELECT b.tenant, q.schedule_id, q.nth FROM business b CROSS JOIN LATERAL (
      SELECT s.schedule_id, row_number() OVER () AS nth FROM (
        SELECT schedule_id FROM schedules WHERE tenant = b.tenant AND status = 'active' AND try_at <= clock_timestamp()
        ORDER BY try_at LIMIT ${batchSize}) s) q
  ), pick AS (
    SELECT s.tenant, s.schedule_id FROM candidate c JOIN schedules s USING (tenant, schedule_id)
    WHERE s.status = 'active' AND s.try_at <= clock_timestamp() ORDER BY c.nth LIMIT ${batchSize} FOR UPDATE OF s SKIP LOCKED
  )
  UPDATE schedules s SET claims = claims + 1, try_at = clock_timestamp() + ${claimMs} * interval '1 millisecond'
  FROM pick WHERE s.tenant = pick.tenant AND s.schedule_id = pick.schedule_id
  RETURNING s.tenant, s.schedule_id, s.cron, s.time_zone, s.catch_up, s.request, s.next_at, s.claims, clock_timestamp() AS now`

/** `next`: the planned time that is fired next; null: none is left. */
const settleStatement = `
  UPDATE schedules SET status = CASE WHEN $4::timestamptz IS NULL THEN 'ended' ELSE 'active' END, next_at = $4, try_at = GREATEST($4, $5),
    last_planned_at = COALESCE($6, last_planned_at), last_run_id = COALESCE($7, last_run_id), last_error = $8::json
  WHERE tenant = $1 AND schedule_id = $2 AND claims = $3 AND status = 'active'`

/** What became of one claim. */
type Firing = {
  next: number | null
  retryAt: number | null
  planned: number | null
  runId: string | null
  error: ScheduleError | null
}

/** Runs that were submitted, and schedules that have an error. */
export type FiringCounts = Readonly<Record<'fired' | 'failed', number>>

type SubmitRun = (businessId: string, request: ScheduledRequest, key: string) => Promise<Admission>

/** The planned times of a claim that are fired now, in order, and how late a skipped one is. */
const listDueTimes = ({ cron, time_zone, catch_up, next_at, now }: ScheduleClaim) => {
  const from = next_at.getTime()
  const max = catch_up === 'all' ? maxCaughtUp : 1
  const times = cron === null ? [from] : listPlannedTimes({ cron, time_zone }, from, now.getTime(), max)
  const isMissed = catch_up === 'none' && now.getTime() - (times.at(-1) ?? 0) > maxLateMs
  return { times: isMissed ? [] : times, missed: isMissed ? (times.at(-1) ?? null) : null }
}

/** Submits what is due of one schedule. The key of each run is its planned time, so it can only exist once. */
const fireSchedule = async (claim: ScheduleClaim, submit: SubmitRun): Promise<Firing> => {
  const { cron, time_zone, now } = claim
  const { times, missed } = listDueTimes(claim)
  const toError = (planned: number, code: string, message: string): ScheduleError => ({
    code,
    message: cutText(message, 1000),
    planned_at: new Date(planned).toISOString(),
    at: now.toISOString(),
  })
  const next = cron === null ? null : findNextTime({ cron, time_zone }, now.getTime())
  const firing: Firing = { next, retryAt: null, planned: null, runId: null, error: null }
  if (missed !== null)
    firing.error = toError(missed, 'missed', 'no worker was there in time, and catch_up is none')
  for (const planned of times) {
    firing.planned = planned
    firing.error = null
    try {
      const key = `${claim.schedule_id}:${new Date(planned).toISOString()}`
      firing.runId = (await submit(claim.tenant, claim.request, key)).run.id
    } catch (error) {
      // it was fired before its request was changed
      if (isMasonError(error, 'idempotency_conflict')) continue
      const { code, message } = toMasonError(error)
      firing.error = toError(planned, code, message)
      if (isMasonError(error, 'too_many_requests', 'database_unavailable', 'internal') || passesSoon(error))
        return { ...firing, next: planned, retryAt: now.getTime() + retryMs }
    }
  }
  return firing
}

/**
 * Fires the schedules that are due, a hundred at a time, until none is left; returns how many runs it submitted and how many
 * schedules have an error. Several workers share them.
 */
export const fireSchedules = async (
  database: Database,
  submit: SubmitRun,
  log: Log,
): Promise<FiringCounts> => {
  const sum = { fired: 0, failed: 0 }
  for (;;) {
    const isActive = await hasRow(database, activeStatement, [])
    const rows = isActive ? (await database.query<ScheduleClaim>(claimStatement)).rows : []
    await Promise.all(
      rows.map(async (claim) => {
        try {
          const firing = await fireSchedule(claim, submit)
          await settleFiring(database, claim, firing)
          sum.fired += firing.runId === null ? 0 : 1
          sum.failed += firing.error === null ? 0 : 1
        } catch (error) {
          // another worker fires it once the claim has lapsed
          log.warn({ schedule_id: claim.schedule_id, error: String(error) }, 'a schedule will be fired again')
        }
      }),
    )
    if (rows.length < batchSize) return sum
  }
}

const settleFiring = (
  sql: Sql,
  { tenant, schedule_id, claims }: ScheduleClaim,
  { next, retryAt, planned, runId, error }: Firing,
): Promise<unknown> => {
  const toTime = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const values = [toTime(next), toTime(retryAt), toTime(planned), runId, error && JSON.stringify(error)]
  return sql.query(settleStatement, [tenant, schedule_id, claims, ...values])
}
