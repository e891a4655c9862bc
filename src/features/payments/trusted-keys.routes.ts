import { actionRoute, resourceRoutes } from '../../routes/resource-routes.ts'
import { databaseRef } from '../core.ref.ts'
import { defineRoutes } from '../definitions.ts'
import { trustedKeySchemas, trustedKeysFilter } from './trust/trust-schemas.ts'
import { createTrustedKeys } from './trust/trusted-keys.ts'

const resource = { path: '/admin/v1/trust', one: 'a trusted key', many: 'trusted keys' } as const

/** The keys of issuers whose signatures on mandates, carts and receipts are trusted. They end and never change. */
export default defineRoutes({
  needs: { database: databaseRef },
  add(app, { database }, server) {
    const keys = createTrustedKeys(database)
    resourceRoutes(app, {
      ...resource,
      ...trustedKeySchemas,
      filter: trustedKeysFilter,
      problems: { create: ['already_exists'] },
      store: () => keys,
    })
    actionRoute(app, server, resource, {
      name: 'end',
      summary: 'Ends a trusted key now; one that has ended stays as it is',
      response: trustedKeySchemas.view,
      run: (_, id) => keys.end(id),
    })
    actionRoute(app, server, resource, {
      name: 'revoke',
      summary: 'Revokes a trusted key now, for every business that trusts it: whatever it signed is refused',
      response: trustedKeySchemas.view,
      run: (_, id) => keys.revoke(id),
    })
  },
})
