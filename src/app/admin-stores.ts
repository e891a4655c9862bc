import { createBusinesses } from '../accounts/businesses.ts'
import { createOperators } from '../accounts/operators.ts'
import { createTokens } from '../accounts/tokens.ts'
import { createUserAccounts, type DeleteOfUser } from '../accounts/users.ts'
import { createUnknownEffects } from '../engine/runs/unknown-effects.ts'
import type { UserMemory } from '../engine/sessions/user-memory.ts'
import { allRunsRef, secretsChangedRef } from '../features/core.ref.ts'
import type { Features } from '../features/load-features.ts'
import { createFieldsError } from '../state/resource-schema.ts'
import type { Runtime } from './api.ts'
import { listAudit } from './audit-log.ts'
import { createConsoleSessions } from './console-sessions.ts'
import type { Drivers } from './open-drivers.ts'
import type { ModelLayer } from './open-models.ts'
import { findModelProbes } from './open-runtime-features.ts'

type AdminParts = Pick<Drivers, 'database' | 'clock' | 'auditing'> & {
  layer: ModelLayer
  features: Pick<Features, 'find'>
  memory: UserMemory
  /** Deletes what features have of a user. */
  deleteOfUser: DeleteOfUser
}

/** What admins manage, for all businesses. */
export const createAdminStores = (parts: AdminParts): Runtime['admin'] => {
  const { database, layer, features, clock, auditing } = parts
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
    users: createUserAccounts(database, parts.deleteOfUser),
    registry: layer.createAdmin(findModelProbes(features)),
    effects: createUnknownEffects(database),
    async listAllRuns(filter) {
      const list = features.find(allRunsRef)
      if (list) return list(filter)
      throw createFieldsError({
        pointer: '/business_id',
        detail: 'must name one business: there is no list of all',
      })
    },
  }
}
