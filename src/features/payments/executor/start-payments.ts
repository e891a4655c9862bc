import type { Config } from '../../../infra/config/config.ts'
import { toIssuer } from '../../../infra/config/issuer.ts'
import type { Database, RunKey } from '../../../infra/database/database.ts'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import type { Hints } from '../../../infra/queue/hints.ts'
import { type Queues, wakeRun } from '../../../infra/queue/queues.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { MasonError, toSettingsError } from '../../../state/errors.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import type { Log } from '../../../state/ports/log.ts'
import type { OpenPaymentAgents, SignNextCard } from '../../core.ref.ts'
import type { PaymentAgents } from '../../payment-agents.ts'
import { decideConsent } from '../consent/decide-consents.ts'
import { openPaymentMasterKeys } from '../keys/executor-master-keys.ts'
import { openPaymentKeys } from '../keys/payment-keys.ts'
import { createProviderOpener } from '../providers/provider-rows.ts'
import { createTrust } from '../trust/trust.ts'
import { createCardSigner } from './card-signer.ts'
import { type RunningExecutor, startExecutor } from './start-executor.ts'

/** What an executor of payments works with. `database` is under its own role. */
export type ExecutorParts = {
  database: Database
  egress: Egress
  /** Wakes workers; null: the outbox does, half a second later. */
  queues: Queues | null
  /** Say that there is work; null: it is found within the time of a poll. */
  hints: Hints | null
  clock: Clock
  log: Log
  scrubber: Scrubber
  /** How it calls other agents; null: it pays by none. */
  agents: OpenPaymentAgents | null
  /** Null: agent cards are not signed. */
  signNextCard: SignNextCard | null
}

/**
 * Starts the executor of payments in this process. Throws `secret_unreadable` where the payment key is not that of its rows.
 * Without a database server it opens test providers only.
 */
export const startPayments = async (
  config: Config,
  { database, egress, queues, hints, clock, log, scrubber, ...others }: ExecutorParts,
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
  const agents = others.agents?.({ egress, unseal }, database) ?? noPaymentAgents
  const { signNextCard } = others
  const services = {
    database,
    trust,
    openProvider: createProviderOpener(database, { unseal }, egress, { testOnly, agents, trust }),
    unseal,
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

/**
 * Starts the executor in a process of something else, which has its database only where there is no database server. Throws
 * `invalid_settings` in others.
 */
export const startEmbeddedPayments = async (
  config: Config,
  { database, ...parts }: Omit<ExecutorParts, 'database'> & { database: Database | null },
): Promise<RunningExecutor> => {
  if (config.database.kind === 'postgres' || database === null)
    throw toSettingsError(
      'on a database server the executor of payments is a process of its own',
      'run `mason payments` with MASON_PAYMENT_DATABASE_URL and MASON_PAYMENT_KEY',
    )
  return startPayments(config, { database, ...parts })
}
