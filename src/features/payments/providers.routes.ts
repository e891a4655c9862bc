import { z } from 'zod'
import { actionRoute, resourceRoutes } from '../../routes/resource-routes.ts'
import { businessIdSchema } from '../../state/run-request.ts'
import { defineRoutes } from '../definitions.ts'
import { providersRef } from './payments.ref.ts'
import { providerSchemas } from './providers/provider-schemas.ts'

const resource = {
  path: '/admin/v1/providers',
  one: 'a payment provider',
  many: 'payment providers',
} as const

const filter = z.strictObject({
  business_id: businessIdSchema.describe('Those that this business pays by').optional(),
})

/** Payment providers. Their secrets are encrypted to the executor's public key; this process cannot read them again. */
export default defineRoutes({
  needs: { providers: providersRef },
  add(app, { providers }, server) {
    resourceRoutes(app, {
      ...resource,
      ...providerSchemas,
      filter,
      isPermanent: true,
      problems: {
        create: ['already_exists', 'secret_unreadable'],
        change: ['already_exists', 'secret_unreadable'],
      },
      store: () => providers,
    })
    actionRoute(app, server, resource, {
      name: 'end',
      summary: 'Ends a payment provider: it takes no new payments, and those that it has go on',
      response: providerSchemas.view,
      run: (_, id) => providers.end(id),
    })
  },
})
