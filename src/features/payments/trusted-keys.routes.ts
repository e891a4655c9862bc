import { actionRoute, resourceRoutes } from '../../routes/resource-routes.ts'
import { defineRoutes } from '../definitions.ts'
import { trustedKeysRef } from './payments.ref.ts'
import { trustedKeySchemas, trustedKeysFilter } from './trust/trust-schemas.ts'

const resource = { path: '/admin/v1/trust', one: 'a trusted key', many: 'trusted keys' } as const

/** The keys of issuers whose signatures on mandates, carts and receipts are trusted. They end and never change. */
export default defineRoutes({
  needs: { keys: trustedKeysRef },
  add(app, { keys }, server) {
    resourceRoutes(app, {
      ...resource,
      ...trustedKeySchemas,
      filter: trustedKeysFilter,
      problems: { create: ['already_exists'] },
      store: () => ({
        list: (scope, page) => keys.list({ ...scope, ...page }),
        create: (_, input) => keys.create(input),
        get: (_, id) => keys.get(id),
      }),
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
