import type { Database } from '../../infra/database/database.ts'
import type { Hints } from '../../infra/queue/hints.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { Json } from '../../state/runtime-state.ts'
import type { Registry } from '../ports/model-ports.ts'
import type { FormatTestView, ModelProbes } from '../schemas/model-probe.ts'
import type { FormatInput, FormatView } from '../schemas/response-format.ts'
import { createCategories } from './categories.ts'
import { createEndpoints } from './endpoints.ts'
import { createGrants } from './grants.ts'
import { createRoutes } from './model-routes.ts'
import { registryLock } from './registry-rows.ts'
import { createFormats } from './response-formats.ts'
import { createScenarios } from './scenarios.ts'
import { createKeys } from './vendor-keys.ts'
import { createModels } from './vendor-models.ts'
import { createVendors } from './vendors.ts'

/** What the operations of admins need. */
export type RegistryAdminOptions = {
  database: Database
  /** @internal */
  masterKeys: MasterKeys
  /** @internal */
  registry: Pick<Registry, 'refresh' | 'view'>
  hints: Pick<Hints, 'publish'>
  /** Makes real calls. */
  models: ModelProbes
  formats: {
    findErrors(format: FormatInput): FieldError[]
    test(format: FormatView, raw: Json): FormatTestView
  }
}

/** The channel on which processes tell each other to look again. */
const healthChannel = 'model-health'

/** All operations of admins on the registry. A change takes effect here at once, in other processes within a second. */
export const createRegistryAdmin = (options: RegistryAdminOptions) => {
  const { database, masterKeys, registry, hints, models, formats } = options
  const context = {
    database,
    lock: registryLock,
    masterKeys,
    healthChanged: () => hints.publish(healthChannel, ''),
    changed: () => registry.refresh(),
    view: () => registry.view,
    findFormatErrors: formats.findErrors,
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
    probes: { ...models, testFormat: formats.test },
  }
}

/** All operations of admins on the registry. */
export type RegistryAdmin = ReturnType<typeof createRegistryAdmin>
