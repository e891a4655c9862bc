import type { ZodObject } from 'zod'
import {
  endpointSchemas,
  keyMatchSchema,
  keyRotationSchema,
  keySchemas,
  keySearchSchema,
  keyViewSchema,
  modelSchemas,
  vendorSchemas,
} from '../../../models/schemas/catalog.ts'
import {
  modelTestInputSchema,
  modelTestViewSchema,
  probeViewSchema,
  unreadAnswerSchema,
} from '../../../models/schemas/model-probe.ts'
import { pageSchema, plainPageQuery } from '../../../routes/parameters.ts'
import {
  actionRoute,
  createParams,
  describeAdmin,
  handleOne,
  type Resource,
  readAdminRequest,
  resourceRoutes,
} from '../../../routes/resource-routes.ts'
import type { App } from '../../../routes/route.ts'
import type { ServerContext } from '../plumbing/server-context.ts'

const conflicts: Resource['problems'] = {
  create: ['already_exists'],
  change: ['already_exists'],
  remove: ['in_use'],
}

/** Vendors, and the keys, endpoints and models of each. */
export const vendorsRoutes = (app: App, server: ServerContext): void => {
  resourceRoutes(app, {
    path: '/admin/v1/vendors',
    one: 'a vendor',
    many: 'vendors',
    ...vendorSchemas,
    problems: conflicts,
    store: () => server.runtime.admin.registry.vendors,
  })
  resourceRoutes(app, {
    path: '/admin/v1/vendors/:vendor_id/endpoints',
    one: 'an endpoint',
    many: 'endpoints',
    ...endpointSchemas,
    problems: conflicts,
    summaries: {
      change: 'Changes an endpoint; headers and timeouts are merged one by one, null removes one',
    },
    store: () => server.runtime.admin.registry.endpoints,
  })
  keysRoutes(app, server)
  modelsRoutes(app, server)
}

const keysRoutes = (app: App, server: ServerContext): void => {
  const registry = () => server.runtime.admin.registry
  const keys = { path: '/admin/v1/vendors/:vendor_id/keys', one: 'a key', many: 'keys' } as const
  resourceRoutes(app, {
    ...keys,
    ...keySchemas,
    problems: { ...conflicts, create: ['already_exists', 'secret_unreadable'] },
    summaries: {
      create: 'Adds a key; its secret is never returned',
      change: 'Changes a key; limits are merged one by one, null removes one',
      remove: 'Deletes a key and its grants, once no request uses it',
    },
    store: () => registry().keys,
  })
  app.post(`${keys.path}/find`, {
    schema: { params: createParams(keys.path) as ZodObject, body: keySearchSchema },
    config: describeAdmin(keys, 'findKey', 'Finds the key of a vendor that has this secret', {
      responses: { 200: { description: 'The key, without its secret, or null', schema: keyMatchSchema } },
    }),
    handler: async (request) => {
      const { secret } = request.body as { secret: string }
      return { key: await registry().keys.find(readAdminRequest(request).scope, secret) }
    },
  })
  const setStatus = (name: 'enable' | 'disable', summary: string, status: 'active' | 'disabled') =>
    actionRoute(app, server, keys, {
      name,
      summary,
      response: keyViewSchema,
      run: (scope, id) => registry().keys.setStatus(scope, id, status),
    })
  setStatus('enable', 'Enables a key and resets its health', 'active')
  setStatus('disable', 'Disables a key', 'disabled')
  actionRoute(app, server, keys, {
    name: 'rotate',
    summary: 'Replaces the secret of a key, at once',
    body: keyRotationSchema,
    response: keyViewSchema,
    problems: ['secret_unreadable'],
    run: (scope, id, { secret }) => registry().keys.rotate(scope, id, secret),
  })
  actionRoute(app, server, keys, {
    name: 'probe',
    summary: 'Makes one real, small call with a key',
    response: probeViewSchema,
    run: async (scope, id, _, signal) =>
      (await registry().keys.get(scope, id)) && registry().probes.probe(id, signal),
  })
}

const modelsRoutes = (app: App, server: ServerContext): void => {
  const registry = () => server.runtime.admin.registry
  const models = {
    path: '/admin/v1/vendors/:vendor_id/models',
    one: 'a model',
    many: 'models',
    ids: ['VendorModel', 'VendorModels'],
  } as const
  resourceRoutes(app, {
    ...models,
    ...modelSchemas,
    problems: { ...conflicts, change: ['already_exists', 'in_use'] },
    store: () => registry().models,
  })
  actionRoute(app, server, models, {
    name: 'test',
    summary: 'Makes a real call and returns the raw response beside the result read from it',
    body: modelTestInputSchema,
    bodyOptional: true,
    response: modelTestViewSchema,
    run: async (scope, id, body, signal) =>
      (await registry().models.get(scope, id)) && registry().probes.test(id, body, signal),
  })
  app.get(`${models.path}/:id/unread-answers`, {
    schema: { params: createParams(models.path, models.one) as ZodObject, querystring: plainPageQuery },
    config: describeAdmin(
      models,
      'listUnreadAnswers',
      'Lists the responses that could not be read, without secrets, the latest first',
      { responses: { 200: { description: 'One page', schema: pageSchema(unreadAnswerSchema) } } },
    ),
    handler: handleOne(models, (scope, id, request) =>
      registry().models.unread(scope, id, readAdminRequest(request).page),
    ),
  })
}
