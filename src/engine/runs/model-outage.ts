import { hasRow, queryOne } from '../../infra/database/database.ts'
import type { Outage, OutageRecord, OutageTry } from '../../state/outage.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { type RunFence, toFenceValues } from './claim.ts'

/** Waits double from the first to the longest. */
const backoff = { firstMs: 1000, maxMs: 30_000 }
/** With less time left after a wait, the run waits until its time is up. */
const minTryMs = 1000
/** How many of the first and of the last tries are recorded. */
const keptTries = 10
const maxMessage = 500

/** Milliseconds until the next try, after `tries` earlier ones: at least `waitMs`, at most `maxMs`, with jitter. */
export const computeOutageDelayMs = (
  tries: number,
  waitMs: number,
  maxMs: number,
  random: () => number = Math.random,
): number => {
  const stepMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(tries, 30))
  const delayMs = Math.ceil(Math.max(waitMs, stepMs / 2) + (random() * stepMs) / 2)
  return maxMs - delayMs < minTryMs ? Math.ceil(maxMs) : delayMs
}

/** The record with one more try. */
export const recordOutageTry = ({ first, omitted, last }: OutageRecord, next: OutageTry): OutageRecord => {
  if (first.length < keptTries) return { first: [...first, next], omitted, last }
  const isFull = last.length === keptTries
  return { first, omitted: omitted + (isFull ? 1 : 0), last: [...(isFull ? last.slice(1) : last), next] }
}

type OutageRow = { tries: number; record: OutageRecord | null; is_open: boolean; now: Date }

/** `is_open`: the run has not gone on since its last try. */
const readStatement = `
  SELECT o.tries, o.record, COALESCE(o.seq = r.next_seq, false) AS is_open, clock_timestamp() AS now
  FROM runs r LEFT JOIN run_outages o USING (tenant, run_id) WHERE r.tenant = $1 AND r.run_id = $2 AND r.epoch = $3`

/** The tries for which no model was available; null when the run has gone on since. */
export const readOutageRecord = async (sql: Sql, fence: RunFence): Promise<OutageRecord | null> => {
  const row = await queryOne<OutageRow>(sql, readStatement, toFenceValues(fence))
  return row?.is_open ? row.record : null
}

/** This claim does not count towards `poison`. The wait counts as work from the start: it is known how long it takes. */
const waitStatement = `
  WITH mine AS (
    UPDATE runs SET status = 'queued', stalls = GREATEST(stalls - 1, 0), worked_ms = $4::bigint + $5::bigint,
      run_at = clock_timestamp() + $5::bigint * interval '1 millisecond', lease_owner = NULL, lease_until = NULL
    WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running' AND cancel_requested_at IS NULL
    RETURNING run_at, next_seq
  ), outage AS (
    INSERT INTO run_outages (tenant, run_id, seq, tries, reason, record) SELECT $1, $2, next_seq, $6, $7::json, $8::json FROM mine
    ON CONFLICT (tenant, run_id) DO UPDATE SET seq = EXCLUDED.seq, tries = EXCLUDED.tries, reason = EXCLUDED.reason, record = EXCLUDED.record
  ) INSERT INTO outbox (tenant, run_id, ring_at) SELECT $1, $2, run_at FROM mine RETURNING run_id`

/**
 * Queues the run for when a model may be available, at most `maxMs` from now, and records the try. False: as for the ways
 * in release.ts.
 */
export const waitForModel = async (
  sql: Sql,
  fence: RunFence,
  { waitMs, ...outage }: Outage,
  maxMs: number,
  workedMs: number,
): Promise<boolean> => {
  const row = await queryOne<OutageRow>(sql, readStatement, toFenceValues(fence))
  if (!row) return false
  const tries = row.is_open ? row.tries : 0
  const delay_ms = computeOutageDelayMs(tries, waitMs, maxMs)
  const reason = { code: outage.code, message: cutText(outage.message, maxMessage) }
  const record = recordOutageTry(row.record ?? { first: [], omitted: 0, last: [] }, {
    at: row.now.toISOString(),
    node: outage.node,
    ...reason,
    delay_ms,
  })
  return hasRow(sql, waitStatement, [
    ...toFenceValues(fence),
    Math.ceil(workedMs),
    delay_ms,
    tries + 1,
    JSON.stringify(reason),
    JSON.stringify(record),
  ])
}
