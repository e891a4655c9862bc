import { cardSigningRef, paymentAgentsRef } from '../features/core.ref.ts'
import { type Features, openFeatures } from '../features/load-features.ts'
import type { Config } from '../infra/config/config.ts'
import { toIssuer } from '../infra/config/issuer.ts'
import type { Database, RunKey } from '../infra/database/database.ts'
import { openDatabases } from '../infra/database/open-database.ts'
import { openEgress } from '../infra/egress/egress.ts'
import type { Egress } from '../infra/egress/egress-port.ts'
import { systemClock } from '../infra/lib/system-clock.ts'
import { settlesWithin } from '../infra/lib/timeouts.ts'
import { type Hints, openHints } from '../infra/queue/hints.ts'
import { openQueues, type Queues, wakeRun } from '../infra/queue/queues.ts'
import { openPaymentMasterKeys } from '../infra/secrets/master-key-files.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import { createMetrics, type Metrics } from '../infra/telemetry/metrics.ts'
import { decideConsent } from '../payments/consent/decide-consents.ts'
import { createCardSigner } from '../payments/executor/card-signer.ts'
import { type RunningExecutor, startExecutor } from '../payments/executor/start-executor.ts'
import { openPaymentKeys } from '../payments/keys/payment-keys.ts'
import { sealForExecutor } from '../payments/keys/sealed-texts.ts'
import { createProviderOpener } from '../payments/providers/provider-rows.ts'
import { createTrust } from '../payments/trust/trust.ts'
import { MasonError } from '../state/errors.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { PaymentAgents } from '../state/ports/payment-agents.ts'
import type { HealthReport } from './api.ts'
import { createClosers } from './closers.ts'
import { featureSources } from './features.generated.ts'

/** What an executor of payments works with. `database` is under its own role. */
type ExecutorParts = {
  database: Database
  egress: Egress
  /** Wakes workers; null: the outbox does, half a second later. */
  queues: Queues | null
  /** Say that there is work; null: it is found within the time of a poll. */
  hints: Hints | null
  clock: Clock
  log: Log
  scrubber: Scrubber
  /** How it calls other agents, and signs agent cards. */
  features: Pick<Features, 'find'>
}

/**
 * Starts the executor of payments in this process. Throws `secret_unreadable` where the payment key is not that of its rows.
 * Without a database server it opens test providers only.
 */
export const startPayments = async (
  config: Config,
  { database, egress, queues, hints, clock, log, scrubber, features }: ExecutorParts,
): Promise<RunningExecutor> => {
  const masterKeys = await openPaymentMasterKeys(config, (secret) => scrubber.add(secret))
  const { signingKey, agentJwk, agentKey, ...keys } = await openPaymentKeys(database, masterKeys)
  const unseal = async (sealed: string, purpose: string): Promise<string> => {
    const text = await keys.unseal(sealed, purpose)
    scrubber.add(text)
    return text
  }
  const testOnly = config.database.kind !== 'postgres'
  const signer = { issuer: toIssuer(config), signingKey, agentJwk }
  const wake = (run: RunKey): void => {
    if (queues) wakeRun(queues, run)
  }
  const consents = { database, signer, wake, publicUrl: config.publicUrl ?? null }
  const trust = createTrust(database)
  const agents = features.find(paymentAgentsRef)?.({ egress, unseal }, database) ?? noPaymentAgents
  const signNextCard = features.find(cardSigningRef)
  const services = {
    database,
    trust,
    openProvider: createProviderOpener(database, { unseal }, egress, { testOnly, agents, trust }),
    unseal,
    seal: (text: string, purpose: string) => sealForExecutor(database, text, purpose),
    signer,
    agentKey,
    wake,
    decideConsent: () => decideConsent(consents),
    ...(signNextCard && { signCard: () => signNextCard(database, createCardSigner(signer), log) }),
    audience: toIssuer(config),
    clock,
    log,
  }
  // PGlite is one session, and a look for work is three statements
  return startExecutor(services, { hints, ...(testOnly && { idleMs: 500 }) })
}

/** The features of an executor that is a process of its own: what it calls agents with, and signs their cards. */
export const openExecutorFeatures = (): Promise<Features> =>
  openFeatures(featureSources, [], [paymentAgentsRef, cardSigningRef])

const refuse = (): never => {
  throw new MasonError('effect_unknown', 'this server has no client for other agents', {
    remedy: 'run `mason payments` with the feature that has one',
  })
}
/** The agents of the executor on a server without a feature for them: none. */
const noPaymentAgents: PaymentAgents = {
  find: async () => null,
  send: async () => refuse(),
  lookup: async () => refuse(),
  readTask: async () => refuse(),
}

/** The executor as a process of its own. `close` lets what is being sent end, within `timeoutMs`. */
export type ExecutorProcess = {
  metrics: Metrics
  health(): Promise<HealthReport>
  close(timeoutMs: number): Promise<void>
}

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

/** Opens the executor's database under its own login and starts it: `mason payments`. */
export const openExecutor = async (
  config: Config,
  { log, scrubber }: Pick<ExecutorParts, 'log' | 'scrubber'>,
): Promise<ExecutorProcess> => {
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
    const features = await openExecutorFeatures()
    const parts = { database, egress, queues, hints, clock: systemClock, log, scrubber, features }
    const executor = await startPayments(config, parts)
    closers.add(() => executor.stop())
    return {
      metrics: createMetrics(async () => noBacklog),
      async health() {
        const since = performance.now()
        const check = await database.query('SELECT 1').then(
          () => ({ ok: true as const, ms: Math.round(performance.now() - since) }),
          (error: unknown) => ({ ok: false as const, error: String(error) }),
        )
        return { ok: check.ok, checks: { database: check } }
      },
      async close(timeoutMs) {
        const closed = closers
          .close()
          .catch((error: unknown) => log.warn({ error: String(error) }, 'closing failed'))
        await settlesWithin(closed, timeoutMs)
      },
    }
  } catch (error) {
    await closers.close().catch(() => {})
    throw error
  }
}
