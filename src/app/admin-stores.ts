import { listAudit } from '../accounts/audit-log.ts'
import { createBudgets } from '../accounts/budgets.ts'
import { createBusinesses } from '../accounts/businesses.ts'
import { createConsoleSessions } from '../accounts/console-sessions.ts'
import { createOperators } from '../accounts/operators.ts'
import { createTokens } from '../accounts/tokens.ts'
import { createUserAccounts, type DeleteOfUser } from '../accounts/users.ts'
import { listAllRuns } from '../engine/runs/all-runs.ts'
import { createOverview } from '../engine/runs/overview.ts'
import { createRejectedJobs } from '../engine/runs/rejected-jobs.ts'
import { createUnknownEffects } from '../engine/runs/unknown-effects.ts'
import type { UserMemory } from '../engine/sessions/user-memory.ts'
import { secretsChangedRef } from '../features/core.ref.ts'
import type { Features } from '../features/load-features.ts'
import type { BusinessApi, Runtime } from './api.ts'
import type { Drivers } from './open-drivers.ts'
import type { ModelLayer } from './open-models.ts'
import { countDeadWebhooks, findModelProbes } from './open-runtime-features.ts'

type AdminParts = Pick<Drivers, 'database' | 'clock' | 'auditing' | 'readBacklog'> & {
  layer: ModelLayer
  features: Pick<Features, 'find'>
  memory: UserMemory
  of(businessId: string): BusinessApi
  /** Deletes what features have of a user. */
  deleteOfUser: DeleteOfUser
}

/** What admins manage, for all businesses. */
export const createAdminStores = (parts: AdminParts): Runtime['admin'] => {
  const { database, layer, features, clock, auditing, of } = parts
  const businesses = createBusinesses(database, layer.masterKeys, parts.memory.forgetOfBusiness, () =>
    layer.registry.refresh(),
  )
  return {
    businesses: {
      ...businesses,
      async change(scope, id, change) {
        const changed = await businesses.change(scope, id, change)
        if (changed && change.secrets !== undefined) await features.find(secretsChangedRef)?.(id)
        return changed
      },
    },
    tokens: createTokens(database, clock),
    operators: createOperators(database, clock),
    consoleSessions: createConsoleSessions(database),
    audit: { run: auditing.run, list: (filter) => listAudit(database, filter) },
    budgets: createBudgets(database, layer.budgets.forget),
    users: createUserAccounts(database, parts.deleteOfUser),
    registry: layer.createAdmin(findModelProbes(features)),
    effects: createUnknownEffects(database),
    listAllRuns: (filter) => listAllRuns(database, filter),
    overview: createOverview(database, clock, parts.readBacklog, () => countDeadWebhooks(features)),
    rejectedJobs: createRejectedJobs(database, (businessId, request, key) =>
      of(businessId).submit(request, key, { by: 'queue', beganAtMs: Date.now() }),
    ),
  }
}
