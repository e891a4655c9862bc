import { z } from 'zod'
import { categorySchemas } from '../../../models/schemas/catalog.ts'
import { formatTestInputSchema, formatTestViewSchema } from '../../../models/schemas/model-probe.ts'
import { formatSchemas } from '../../../models/schemas/response-format.ts'
import { grantSchemas, routeSchemas } from '../../../models/schemas/routing.ts'
import { actionRoute, resourceRoutes } from '../../../routes/resource-routes.ts'
import type { App } from '../../../routes/route.ts'
import { businessIdSchema, idSchema } from '../../../state/run-request.ts'
import type { ServerContext } from '../plumbing/server-context.ts'

/** Categories, response formats, routes and grants: the parts of the registry that belong to no vendor. */
export const registryRoutes = (app: App, server: ServerContext): void => {
  const registry = () => server.runtime.admin.registry
  resourceRoutes(app, {
    path: '/admin/v1/categories',
    one: 'a category',
    many: 'categories',
    ...categorySchemas,
    problems: { create: ['already_exists'], change: ['already_exists', 'in_use'], remove: ['in_use'] },
    store: () => registry().categories,
  })
  resourceRoutes(app, {
    path: '/admin/v1/routes',
    one: 'a route',
    many: 'routes',
    ...routeSchemas,
    filter: z.strictObject({
      role: z.string().max(200).describe('Of this role only').optional(),
      category: z.string().max(200).describe('Of this category only').optional(),
    }),
    problems: { create: ['already_exists'] },
    summaries: { remove: 'Deletes a route' },
    store: () => registry().routes,
  })
  resourceRoutes(app, {
    path: '/admin/v1/grants',
    one: 'a grant',
    many: 'grants',
    ...grantSchemas,
    filter: z.strictObject({
      key_id: idSchema.describe('Of this key only').optional(),
      business_id: businessIdSchema.describe('Of this business only').optional(),
      user_id: idSchema.describe('Of this user only').optional(),
    }),
    problems: { create: ['already_exists'], change: ['already_exists'] },
    summaries: { remove: 'Deletes a grant; a key without grants is open to all' },
    store: () => registry().grants,
  })
  formatsRoutes(app, server)
}

const formatsRoutes = (app: App, server: ServerContext): void => {
  const registry = () => server.runtime.admin.registry
  const formats = {
    path: '/admin/v1/response-formats',
    one: 'a response format',
    many: 'response formats',
  } as const
  resourceRoutes(app, {
    ...formats,
    ...formatSchemas,
    passesNumbers: true,
    problems: { create: ['already_exists'], change: ['already_exists'], remove: ['in_use'] },
    summaries: {
      create: 'Adds a response format, if its paths parse and all its samples give the expected result',
    },
    store: () => registry().formats,
  })
  actionRoute(app, server, formats, {
    name: 'test',
    summary: 'Reads a vendor response with a response format',
    body: formatTestInputSchema,
    response: formatTestViewSchema,
    run: async (_, id, { raw }) => {
      const format = await registry().formats.get({}, id)
      return format && registry().probes.testFormat(format, raw)
    },
  })
}
