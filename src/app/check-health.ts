import type { Queues } from '../infra/queue/queues.ts'
import type { HealthReport } from '../infra/telemetry/health-report.ts'
import type { Sql } from '../state/ports/sql.ts'

/** Whether the database answers, and what the queue does. */
export const checkHealth = async (database: Sql, queues: Pick<Queues, 'ping'>): Promise<HealthReport> => {
  const since = performance.now()
  const [databaseCheck, queue] = await Promise.all([
    database.query('SELECT 1').then(
      () => ({ ok: true as const, ms: Math.round(performance.now() - since) }),
      (error: unknown) => ({ ok: false as const, error: String(error) }),
    ),
    queues.ping(),
  ])
  // without the queue runs are still admitted and executed, so a load balancer need not know
  return { ok: databaseCheck.ok, checks: { database: databaseCheck, queue } }
}
