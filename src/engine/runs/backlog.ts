import { queryOne } from '../../infra/database/database.ts'
import type { Backlog } from '../../infra/telemetry/metrics.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { openStatusesSql } from '../../state/run-status.ts'

/** Ready as a claim finds it: due, without a lease, and of its session the earliest unfinished turn. Only open runs are read. */
const backlogStatement = `
  WITH open AS (
    SELECT r.status, r.run_at <= clock_timestamp() AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
        AND NOT EXISTS (SELECT FROM runs e WHERE e.tenant = r.tenant AND e.session_id = r.session_id AND e.turn < r.turn
          AND e.status IN ${openStatusesSql}) AS is_ready,
      r.run_at, r.tenant, r.session_id, r.turn
    FROM runs r WHERE r.status IN ('queued', 'running')
  ), oldest AS (
    SELECT GREATEST(o.run_at, p.ended_at) AS since FROM (SELECT * FROM open WHERE is_ready ORDER BY run_at LIMIT 100) o
    LEFT JOIN runs p ON p.tenant = o.tenant AND p.session_id = o.session_id AND p.turn = o.turn - 1
  )
  SELECT (count(*) FILTER (WHERE status = 'queued'))::int AS queued, ((count(*) FILTER (WHERE status = 'running')) + (SELECT count(*) FROM runs WHERE status = 'waiting'))::int AS running,
    (count(*) FILTER (WHERE is_ready))::int AS ready,
    (SELECT COALESCE(extract(epoch FROM clock_timestamp() - min(since)), 0)::float8 FROM oldest) AS oldest_ready_s,
    (SELECT count(*)::int FROM input_requests WHERE answered_at IS NULL) AS input_required,
    (SELECT count(*)::int FROM workers) AS workers, (SELECT count(*)::int FROM outbox) AS outbox,
    l.unlearned, l.oldest_unlearned_s
  FROM open RIGHT JOIN (
    SELECT count(*)::int AS unlearned, COALESCE(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS oldest_unlearned_s
    FROM distillations WHERE failed_at IS NULL) l ON true
  GROUP BY l.unlearned, l.oldest_unlearned_s`

/** For so long scrapes of one process share a reading. */
const cacheMs = 5_000

/** Reads what waits in the database: one query for all scrapes within five seconds. Rejects while it cannot be read. */
export const createBacklogReader = (
  sql: Sql,
  clock: Pick<Clock, 'monotonicMs'>,
): (() => Promise<Backlog>) => {
  let latest: { reading: Promise<Backlog>; atMs: number } | null = null
  return () => {
    const now = clock.monotonicMs()
    if (latest && now - latest.atMs < cacheMs) return latest.reading
    const reading = queryOne<Backlog>(sql, backlogStatement, []).then((row) => row as Backlog)
    latest = { reading, atMs: now }
    reading.catch(() => {
      latest = null
    })
    return reading
  }
}
