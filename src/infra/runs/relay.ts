import type { Clock, Log } from '../../state/ports.ts'
import type { Database } from '../database/database.ts'
import type { Queues } from '../queue/queue.ts'
import { expireInputs } from './answer.ts'
import { settleRun } from './settle.ts'

type BellRow = { outbox_id: number; tenant: string; run_id: string }

const bellOf = ({ tenant, run_id }: { tenant: string; run_id: string }) => ({ run_id, business_id: tenant })

/** Rings what is due in the outbox; a bell leaves it once the queue has it. Gives how many. */
export const relayBells = async (database: Database, queues: Queues): Promise<number> => {
  const { rows } = await database.query<BellRow>(
    'SELECT outbox_id, tenant, run_id FROM outbox WHERE ring_at <= clock_timestamp() ORDER BY ring_at LIMIT 500',
  )
  if (rows.length === 0) return 0
  await queues.ringMany(rows.map(bellOf))
  await database.query(
    'DELETE FROM outbox WHERE outbox_id IN (SELECT value::bigint FROM json_array_elements_text($1::json))',
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
  SELECT tenant, run_id FROM runs WHERE status = 'queued' AND expires_at <= clock_timestamp() LIMIT 100`

/**
 * What must come true even if every bell was lost: runnable runs are rung for, runs that waited too long and questions
 * nobody answered are settled, workers that fell silent are reported and forgotten, old keys are dropped.
 */
export const reconcile = async (
  database: Database,
  queues: Queues,
  log: Log,
  silentMs: number,
): Promise<void> => {
  const expired = await database.query<{ tenant: string; run_id: string }>(expiredStatement)
  for (const { tenant, run_id } of expired.rows)
    await database.transaction((sql) =>
      settleRun(sql, tenant, run_id, {
        status: 'failed',
        reason: 'expired',
        error: { code: 'expired', message: 'the run waited longer in the queue than its business allows' },
      }),
    )
  await expireInputs(database)
  const silent = await database.query<{ worker_id: string; running: number }>(
    `DELETE FROM workers WHERE seen_at < clock_timestamp() - $1::int * interval '1 millisecond' RETURNING worker_id, running`,
    [silentMs],
  )
  for (const worker of silent.rows)
    log.warn(worker, 'a worker fell silent; its runs go to others when their leases end')
  await database.query(`DELETE FROM idempotency WHERE created_at < clock_timestamp() - interval '48 hours'`)
  const { rows } = await database.query<{ tenant: string; run_id: string }>(runnableStatement)
  if (rows.length > 0) await queues.ringMany(rows.map(bellOf), { coalesce: true })
}

/** Runs `work` again and again, `everyMs` after the last one ended; faults are logged, never thrown. */
export const repeatWork = (
  work: () => Promise<unknown>,
  everyMs: number,
  clock: Clock,
  log: Log,
  what: string,
): { stop(): Promise<void>; soon(): void } => {
  const stopped = new AbortController()
  let wake: () => void = () => {}
  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      await work().catch((error: unknown) => {
        if (!stopped.signal.aborted) log.warn({ error: String(error) }, `${what} failed and is tried again`)
      })
      if (stopped.signal.aborted) return
      const early = new AbortController()
      wake = () => early.abort()
      await clock.sleep(everyMs, AbortSignal.any([stopped.signal, early.signal])).catch(() => {})
    }
  }
  const running = loop()
  return {
    async stop() {
      stopped.abort()
      await running
    },
    soon: () => wake(),
  }
}
