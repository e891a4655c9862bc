import { generateKeyPairSync } from 'node:crypto'
import { startExecutor } from '../../src/features/payments/executor/start-executor.ts'
import { openProvider } from '../../src/features/payments/providers/card.ts'
import type { ProviderSecrets, ProviderSettings } from '../../src/features/payments/providers/provider.ts'
import { createTrust } from '../../src/features/payments/trust/trust.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { openEgress } from '../../src/infra/egress/egress.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'

/** An executor of payments as a process of its own, to be killed and frozen. Its argument is the JSON of a task. */
export type ExecutorTask = {
  /** Of the executor's login. */
  databaseUrl: string
  audience: string
  settings: ProviderSettings
  secrets: ProviderSecrets
}

/** A fifth of the provider's window is longer than this. */
const leaseMs = 3000

const { databaseUrl, audience, settings, secrets } = JSON.parse(process.argv[2] ?? '') as ExecutorTask
const roles = { plain: 'mason_payments', business: 'mason_payments' }
const database = openPostgresDatabase({ url: databaseUrl, max: 10, roles })
const provider = openProvider(settings, secrets, openEgress())
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
startExecutor({
  ...{ database, audience, leaseMs, trust: createTrust(database), clock: systemClock, log: silentLog },
  openProvider: async () => provider,
  unseal: async (sealed) => sealed,
  signer: { issuer: 'https://mason.example', signingKey: async () => ({ key: privateKey }) },
})
process.send?.({ event: 'ready' })
