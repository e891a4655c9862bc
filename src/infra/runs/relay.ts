import type { Log } from '../../state/ports.ts'
import type { Database } from '../database/database.ts'
import type { Queues } from '../queue/queue.ts'
import { expireInputs } from './answer.ts'
import { settleRun } from './settle.ts'

type BellRow = { outbox_id: number; tenant: string; run_id: string }

const bellOf = ({ tenant, run_id }: RunRef) => ({ run_id, business_id: tenant })

/** Rings what is due in the outbox; a bell leaves it once the queue has it. Gives how many. */
export const relayBells = async (database: Database, queues: Queues): Promise<number> => {
  const { rows } = await database.query<BellRow>(
    'SELECT outbox_id, tenant, run_id FROM outbox WHERE ring_at <= clock_timestamp() ORDER BY ring_at LIMIT 500',
  )
  if (rows.length === 0) return 0
  await queues.ringMany(rows.map(bellOf))
  await database.query(
    `DELETE FROM outbox WHERE outbox_id IN (SELECT o.outbox_id FROM outbox o
       JOIN json_array_elements_text($1::json) AS rung ON o.outbox_id = rung::bigint FOR UPDATE OF o SKIP LOCKED)`,
    [JSON.stringify(rows.map((row) => row.outbox_id))],
  )
  return rows.length
}

/** Runs that could be worked on and are not: queued and due, or their lease has ended; only the head of each session. */
const runnableStatement = `
  SELECT r.tenant, r.run_id FROM runs r
  WHERE r.status IN ('queued', 'running') AND r.run_at <= clock_timestamp()
    AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
    AND NOT EXISTS (SELECT FROM runs e WHERE e.tenant = r.tenant AND e.session_id = r.session_id
      AND e.turn < r.turn AND e.status IN ('queued', 'running', 'input_required'))
  ORDER BY r.run_at LIMIT 1000`

const expiredStatement = `
  SELECT tenant, run_id FROM runs WHERE status = 'queued' AND started_at IS NULL AND expires_at <= clock_timestamp() LIMIT 100`

type RunRef = { tenant: string; run_id: string }

/**
 * What must come true even if every bell was lost: runnable runs are rung for, questions nobody answered and runs that
 * waited too long are settled, workers that fell silent are reported and forgotten, old keys are dropped. A fault in
 * one of these keeps none of the others.
 */
export const reconcile = async (
  database: Database,
  queues: Queues,
  log: Log,
  silentMs: number,
): Promise<void> => {
  const steps: Record<string, () => Promise<unknown>> = {
    'ringing for runnable runs': () => ringRunnable(database, queues),
    'expiring questions': () => expireInputs(database),
    'expiring runs': () => expireRuns(database, log),
    'looking for silent workers': () => reportSilent(database, log, silentMs),
    'dropping old keys': () =>
      database.query(
        `DELETE FROM idempotency WHERE ctid = ANY(ARRAY(SELECT ctid FROM idempotency
           WHERE created_at < clock_timestamp() - interval '48 hours' LIMIT 10000))`,
      ),
  }
  for (const [what, step] of Object.entries(steps))
    await step().catch((error: unknown) =>
      log.warn({ error: String(error) }, `${what} failed and is tried again`),
    )
}

const ringRunnable = async (database: Database, queues: Queues): Promise<void> => {
  const { rows } = await database.query<RunRef>(runnableStatement)
  if (rows.length > 0) await queues.ringMany(rows.map(bellOf), { coalesce: true })
}

/** One that cannot be settled keeps none of the others waiting. */
const expireRuns = async (database: Database, log: Log): Promise<void> => {
  const expired = await database.query<RunRef>(expiredStatement)
  const error = { code: 'expired', message: 'the run waited longer in the queue than its business allows' }
  for (const { tenant, run_id } of expired.rows)
    await database
      .transaction((sql) =>
        settleRun(sql, tenant, run_id, { status: 'failed', reason: 'expired', error }, { onlyExpired: true }),
      )
      .catch((fault: unknown) => log.warn({ run_id, error: String(fault) }, 'a run could not be expired'))
}

const reportSilent = async (database: Database, log: Log, silentMs: number): Promise<void> => {
  const silent = await database.query<{ worker_id: string; running: number }>(
    `DELETE FROM workers WHERE seen_at < clock_timestamp() - $1::int * interval '1 millisecond' RETURNING worker_id, running`,
    [silentMs],
  )
  for (const worker of silent.rows)
    log.warn(worker, 'a worker fell silent; its runs go to others when their leases end')
}
