import { listAudit } from '../accounts/audit-log.ts'
import { createBudgets } from '../accounts/budgets.ts'
import { createBusinesses } from '../accounts/businesses.ts'
import { createConsoleSessions } from '../accounts/console-sessions.ts'
import type { Operators } from '../accounts/operators.ts'
import type { Tokens } from '../accounts/tokens.ts'
import { createUserAccounts, type DeleteOfUser } from '../accounts/users.ts'
import { listAllRuns } from '../engine/runs/all-runs.ts'
import { createOverview } from '../engine/runs/overview.ts'
import { createRejectedJobs } from '../engine/runs/rejected-jobs.ts'
import { createUnknownEffects } from '../engine/runs/unknown-effects.ts'
import type { Auditing } from '../infra/database/audited-database.ts'
import type { Database } from '../infra/database/database.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import type { Backlog } from '../infra/telemetry/metrics.ts'
import { createUsageReport } from '../models/metering/usage-report.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { BusinessApi, Runtime } from './api.ts'
import type { openModels } from './open-models.ts'

type AdminParts = {
  database: Database
  layer: Awaited<ReturnType<typeof openModels>>
  tokens: Tokens
  operators: Operators
  auditing: Auditing
  masterKeys: MasterKeys
  /** Follows a change of the secrets of a business. */
  afterSecrets(businessId: string): Promise<void>
  clock: Clock
  readBacklog: () => Promise<Backlog>
  countDeadWebhooks: () => Promise<number>
  of(businessId: string): BusinessApi
  /** Deletes what features have of a user. */
  deleteOfUser: DeleteOfUser
}

/** What admins manage, for all businesses. */
export const createAdminStores = (parts: AdminParts): Runtime['admin'] => {
  const { database, layer, tokens, masterKeys, clock, of } = parts
  const { operators, auditing } = parts
  const businesses = createBusinesses(database, masterKeys)
  return {
    businesses: {
      ...businesses,
      async change(scope, id, change) {
        const changed = await businesses.change(scope, id, change)
        if (changed && change.secrets !== undefined) await parts.afterSecrets(id)
        return changed
      },
    },
    tokens,
    operators,
    consoleSessions: createConsoleSessions(database),
    audit: { run: auditing.run, list: (filter) => listAudit(database, filter) },
    budgets: createBudgets(database, layer.budgets.forget),
    users: createUserAccounts(database, parts.deleteOfUser),
    registry: layer.registryAdmin,
    usage: { report: createUsageReport(database) },
    effects: createUnknownEffects(database),
    listAllRuns: (filter) => listAllRuns(database, filter),
    overview: createOverview(database, clock, parts.readBacklog, parts.countDeadWebhooks),
    rejectedJobs: createRejectedJobs(database, (businessId, request, key) =>
      of(businessId).submit(request, key, { by: 'queue', beganAtMs: Date.now() }),
    ),
  }
}
