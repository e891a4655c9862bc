import type { Database, RunKey } from '../../infra/database/database.ts'
import type { Queues } from '../../infra/queue/queues.ts'
import type { Log } from '../../state/ports/log.ts'
import { openStatusesSql } from '../../state/run-status.ts'
import { expireInputs } from './input-answers.ts'
import { type ReportRunEnd, settleRun } from './settlement.ts'

type OutboxRow = RunKey & { outbox_id: number }

const toWakeUp = ({ tenant, run_id }: RunKey) => ({ run_id, business_id: tenant })

/** Queues the wake-ups that are due in the outbox, and deletes those that the queue has; returns how many. */
export const relayWakeUps = async (database: Database, queues: Queues): Promise<number> => {
  const { rows } = await database.query<OutboxRow>(
    'SELECT outbox_id, tenant, run_id FROM outbox WHERE ring_at <= clock_timestamp() ORDER BY ring_at LIMIT 500',
  )
  if (rows.length === 0) return 0
  await queues.wakeMany(rows.map(toWakeUp))
  await database.query(
    `DELETE FROM outbox WHERE outbox_id IN (SELECT o.outbox_id FROM outbox o
       JOIN json_array_elements_text($1::json) AS sent ON o.outbox_id = sent::bigint FOR UPDATE OF o SKIP LOCKED)`,
    [JSON.stringify(rows.map((row) => row.outbox_id))],
  )
  return rows.length
}

/** Runs that a worker could claim: queued and due, or with an expired lease; only the first unfinished one of each session. */
const runnableStatement = `
  SELECT r.tenant, r.run_id FROM runs r
  WHERE r.status IN ('queued', 'running') AND r.run_at <= clock_timestamp()
    AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
    AND NOT EXISTS (SELECT FROM runs e WHERE e.tenant = r.tenant AND e.session_id = r.session_id
      AND e.turn < r.turn AND e.status IN ${openStatusesSql})
  ORDER BY r.run_at LIMIT 1000`

const expiredStatement = `
  SELECT tenant, run_id FROM runs WHERE status = 'queued' AND started_at IS NULL AND expires_at <= clock_timestamp() LIMIT 100`

/**
 * Does what must happen even if every wake-up was lost: wakes workers for runnable runs, settles overdue questions and
 * expired runs, reports and deletes silent workers, deletes old keys. An error in one step does not stop the others.
 */
export const reconcileRuns = async (
  database: Database,
  queues: Queues,
  log: Log,
  silentMs: number,
  onEnded?: ReportRunEnd,
): Promise<void> => {
  const steps: Record<string, () => Promise<unknown>> = {
    'waking workers for runnable runs': () => wakeRunnableRuns(database, queues),
    'expiring questions': () => expireInputs(database),
    'expiring runs': () => expireRuns(database, log, onEnded),
    'reporting silent workers': () => reportSilentWorkers(database, log, silentMs),
    'deleting old idempotency keys': () =>
      database.query(
        `DELETE FROM idempotency WHERE ctid = ANY(ARRAY(SELECT ctid FROM idempotency
           WHERE created_at < clock_timestamp() - interval '48 hours' LIMIT 10000))`,
      ),
  }
  for (const [title, step] of Object.entries(steps))
    await step().catch((error: unknown) =>
      log.warn({ error: String(error) }, `${title} failed and will be retried`),
    )
}

const wakeRunnableRuns = async (database: Database, queues: Queues): Promise<void> => {
  const { rows } = await database.query<RunKey>(runnableStatement)
  if (rows.length > 0) await queues.wakeMany(rows.map(toWakeUp))
}

/** A run that cannot be settled does not stop the others. */
const expireRuns = async (database: Database, log: Log, onEnded?: ReportRunEnd): Promise<void> => {
  const expired = await database.query<RunKey>(expiredStatement)
  const error = { code: 'expired', message: 'the run waited longer in the queue than its business allows' }
  for (const { tenant, run_id } of expired.rows)
    await database
      .transaction((sql) =>
        settleRun(sql, tenant, run_id, { status: 'failed', reason: 'expired', error }, { onlyExpired: true }),
      )
      .then((settled) => settled && onEnded?.(settled))
      .catch((cause: unknown) => log.warn({ run_id, error: String(cause) }, 'a run could not be expired'))
}

const reportSilentWorkers = async (database: Database, log: Log, silentMs: number): Promise<void> => {
  const silentWorkers = await database.query<{ worker_id: string; running: number }>(
    `DELETE FROM workers WHERE seen_at < clock_timestamp() - $1::int * interval '1 millisecond' RETURNING worker_id, running`,
    [silentMs],
  )
  for (const worker of silentWorkers.rows)
    log.warn(worker, 'a worker is silent; other workers take over its runs when their leases expire')
}
