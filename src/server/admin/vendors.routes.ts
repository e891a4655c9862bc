import type { ZodObject } from 'zod'
import {
  endpointChangeSchema,
  endpointInputSchema,
  endpointViewSchema,
  keyChangeSchema,
  keyFoundSchema,
  keyInputSchema,
  keyQuestionSchema,
  keyRotationSchema,
  keyViewSchema,
  modelChangeSchema,
  modelInputSchema,
  modelViewSchema,
  vendorChangeSchema,
  vendorInputSchema,
  vendorViewSchema,
} from '../../state/registry/catalog.ts'
import {
  modelTestInputSchema,
  modelTestViewSchema,
  probeViewSchema,
  unreadAnswersSchema,
} from '../../state/registry/trial.ts'
import type { App, ServerContext } from '../route.ts'
import { actionRoute, viewRoute } from './actions.ts'
import { askedOf, bodyProblems, docOf, paramsOf, type Resource, resourceRoutes } from './resource.ts'

const conflicts: Resource['problems'] = {
  create: ['already_exists'],
  change: ['already_exists'],
  remove: ['in_use'],
}

/** Vendors, and under each its keys, endpoints and models. */
export const vendorsRoutes = (app: App, server: ServerContext): void => {
  resourceRoutes(app, {
    path: '/admin/v1/vendors',
    one: 'a vendor',
    many: 'vendors',
    ids: ['Vendor', 'Vendors'],
    input: vendorInputSchema,
    change: vendorChangeSchema,
    view: vendorViewSchema,
    problems: conflicts,
    store: () => server.runtime.admin.registry.vendors,
  })
  resourceRoutes(app, {
    path: '/admin/v1/vendors/:vendor_id/endpoints',
    one: 'an endpoint',
    many: 'endpoints',
    ids: ['Endpoint', 'Endpoints'],
    input: endpointInputSchema,
    change: endpointChangeSchema,
    view: endpointViewSchema,
    problems: conflicts,
    summaries: {
      change: 'Changes an endpoint; headers and timeouts are merged one by one, null takes one away',
    },
    store: () => server.runtime.admin.registry.endpoints,
  })
  keysRoutes(app, server)
  modelsRoutes(app, server)
}

const keysRoutes = (app: App, server: ServerContext): void => {
  const registry = () => server.runtime.admin.registry
  const keys = {
    path: '/admin/v1/vendors/:vendor_id/keys',
    one: 'a key',
    many: 'keys',
    ids: ['Key', 'Keys'],
  } as const
  resourceRoutes(app, {
    ...keys,
    input: keyInputSchema,
    change: keyChangeSchema,
    view: keyViewSchema,
    problems: { ...conflicts, create: ['already_exists', 'secret_unreadable'] },
    summaries: {
      create: 'Adds a key; its secret is never shown again',
      change: 'Changes a key; limits are merged one by one, null takes one away',
      remove: 'Deletes a key and its grants, once no request with it is under way',
    },
    store: () => registry().keys,
  })
  app.post(`${keys.path}/find`, {
    schema: { params: paramsOf(keys.path) as ZodObject, body: keyQuestionSchema },
    config: docOf(keys, {
      id: 'findKey',
      summary: 'Tells which key of a vendor has this secret, if any',
      answers: { 200: { description: 'The key, without its secret', schema: keyFoundSchema } },
      problems: ['not_found', ...bodyProblems],
    }),
    handler: async (request) => {
      const { secret } = request.body as { secret: string }
      return { key: await registry().keys.find(askedOf(request).scope, secret) }
    },
  })
  const setStatus = (name: 'enable' | 'disable', summary: string, status: 'active' | 'disabled') =>
    actionRoute(app, server, keys, {
      name,
      summary,
      answer: keyViewSchema,
      run: (scope, id) => registry().keys.setStatus(scope, id, status),
    })
  setStatus('enable', 'Uses a key again, healthy whatever happened before', 'active')
  setStatus('disable', 'Stops using a key', 'disabled')
  actionRoute(app, server, keys, {
    name: 'rotate',
    summary: 'Puts a new secret in the place of the old one, at once',
    body: keyRotationSchema,
    answer: keyViewSchema,
    problems: ['secret_unreadable'],
    run: (scope, id, { secret }) => registry().keys.rotate(scope, id, secret),
  })
  actionRoute(app, server, keys, {
    name: 'probe',
    summary: 'Makes one real, small call with a key',
    answer: probeViewSchema,
    run: async (scope, id, _, signal) =>
      (await registry().keys.get(scope, id)) && registry().trials.probe(id, signal),
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
    input: modelInputSchema,
    change: modelChangeSchema,
    view: modelViewSchema,
    problems: { ...conflicts, change: ['already_exists', 'in_use'] },
    store: () => registry().models,
  })
  actionRoute(app, server, models, {
    name: 'test',
    summary: 'Makes a real call and shows the raw answer beside what was read in it',
    body: modelTestInputSchema,
    bodyOptional: true,
    answer: modelTestViewSchema,
    run: async (scope, id, body, signal) =>
      (await registry().models.get(scope, id)) && registry().trials.test(id, body, signal),
  })
  viewRoute(app, models, {
    name: 'unread-answers',
    id: 'listUnreadAnswers',
    summary: 'Shows the answers that could not be read, the latest hundred first, without secrets',
    answer: unreadAnswersSchema,
    read: (scope, id) => registry().models.unread(scope, id),
  })
}
