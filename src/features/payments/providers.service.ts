import { configRef, databaseRef, registryRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { providersRef } from './payments.ref.ts'
import { createProviders } from './providers/provider-rows.ts'

export default defineService({
  provides: providersRef,
  needs: { database: databaseRef, config: configRef, registry: registryRef },
  start: ({ database, config, registry }) =>
    createProviders(database, {
      testOnly: config.database.kind !== 'postgres',
      changed: () => registry.refresh(),
    }),
})
