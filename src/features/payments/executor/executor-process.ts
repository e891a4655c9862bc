import { toIssuer } from '../../../infra/config/issuer.ts'
import type { Database } from '../../../infra/database/database.ts'
import { openDatabases } from '../../../infra/database/open-database.ts'
import { openEgress } from '../../../infra/egress/egress.ts'
import { closeWithin, createClosers } from '../../../infra/lib/closers.ts'
import { systemClock } from '../../../infra/lib/system-clock.ts'
import { openHints } from '../../../infra/queue/hints.ts'
import { openQueues } from '../../../infra/queue/queues.ts'
import { noMetrics } from '../../../infra/telemetry/metrics.ts'
import { cardSigningRef, metricsRef, paymentAgentsRef } from '../../core.ref.ts'
import type { ProcessDefinition } from '../../definitions.ts'
import { startPayments } from './start-payments.ts'

const noBacklog = {
  queued: 0,
  running: 0,
  input_required: 0,
  workers: 0,
  outbox: 0,
  ready: 0,
  oldest_ready_s: 0,
  unlearned: 0,
  oldest_unlearned_s: 0,
}

/** `mason payments`: opens the executor's database under its own login, and moves money for orders. What is being sent may end. */
export const openExecutor: ProcessDefinition['open'] = async (config, { log, scrubber, find }) => {
  const closers = createClosers()
  try {
    const databases = await openDatabases(config, log)
    closers.add(() => databases.close())
    const database = databases.payments as Database
    const egress = openEgress()
    closers.use(egress)
    const { redisUrl: url, queuePrefix: prefix } = config
    const redis = url === null ? null : { kind: 'redis' as const, url, prefix, log }
    const queues = redis && (await openQueues(redis))
    closers.add(async () => queues?.close())
    const hints = redis && (await openHints(redis))
    closers.add(async () => hints?.close())
    const agents = await find(paymentAgentsRef)
    const signNextCard = await find(cardSigningRef)
    const parts = { database, egress, queues, hints, clock: systemClock, log, scrubber, agents, signNextCard }
    const metrics = (await find(metricsRef))?.(async () => noBacklog) ?? noMetrics
    const executor = await startPayments(config, parts)
    closers.add(() => executor.stop())
    return {
      does: 'carries out orders',
      rows: [['receipts', `signed as ${toIssuer(config)}`]],
      readyMessage: 'the executor of payments is ready',
      readyFields: { issuer: toIssuer(config) },
      stopMessage: 'stopping: what is being sent ends, other executors take the rest',
      metrics,
      async health() {
        const since = performance.now()
        const check = await database.query('SELECT 1').then(
          () => ({ ok: true as const, ms: Math.round(performance.now() - since) }),
          (error: unknown) => ({ ok: false as const, error: String(error) }),
        )
        return { ok: check.ok, checks: { database: check } }
      },
      close: (timeoutMs) => closeWithin(closers, timeoutMs, log),
    }
  } catch (error) {
    await closers.close().catch(() => {})
    throw error
  }
}
