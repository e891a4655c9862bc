import type { ModelAdmin } from '../../state/registry/trial.ts'
import type { Database } from '../database/database.ts'
import type { Registry } from '../models/ports.ts'
import type { Hints } from '../queue/hints.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { createCategories } from './categories.ts'
import { createEndpoints } from './endpoints.ts'
import { createFormats, proposeFormat, tryFormat } from './formats.ts'
import { createGrants } from './grants.ts'
import { createKeys } from './keys.ts'
import { createModels } from './models.ts'
import { createRoutes } from './routes.ts'
import { createScenarios } from './scenarios.ts'
import { createVendors } from './vendors.ts'

export type RegistryAdminOptions = {
  database: Database
  masterKeys: MasterKeys
  registry: Pick<Registry, 'refresh' | 'view'>
  hints: Pick<Hints, 'publish'>
  /** Real calls. */
  models: ModelAdmin
}

/** The channel on which processes tell each other to look again. */
const healthChannel = 'model-health'

/** Everything admins can do with the registry. What they change takes effect here at once, elsewhere within a second. */
export const createRegistryAdmin = (options: RegistryAdminOptions) => {
  const { database, masterKeys, registry, hints, models } = options
  const context = {
    database,
    masterKeys,
    healthChanged: () => hints.publish(healthChannel, ''),
    changed: () => registry.refresh(),
    view: () => registry.view,
  }
  return {
    vendors: createVendors(context),
    keys: createKeys(context),
    endpoints: createEndpoints(context),
    models: createModels(context),
    categories: createCategories(context),
    formats: createFormats(context),
    routes: createRoutes(context),
    grants: createGrants(context),
    scenarios: createScenarios(context),
    trials: { ...models, testFormat: tryFormat, inferFormat: proposeFormat },
  }
}

export type RegistryAdmin = ReturnType<typeof createRegistryAdmin>
