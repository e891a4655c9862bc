import { z } from 'zod'
import {
  categoryChangeSchema,
  categoryInputSchema,
  categoryViewSchema,
} from '../../state/registry/catalog.ts'
import {
  formatChangeSchema,
  formatInputSchema,
  formatViewSchema,
} from '../../state/registry/response-format.ts'
import {
  grantChangeSchema,
  grantInputSchema,
  grantViewSchema,
  routeChangeSchema,
  routeInputSchema,
  routeViewSchema,
} from '../../state/registry/routing.ts'
import {
  formatTestInputSchema,
  formatTestViewSchema,
  inferInputSchema,
  inferViewSchema,
} from '../../state/registry/trial.ts'
import { businessIdSchema, idSchema } from '../../state/run-request.ts'
import type { App, ServerContext } from '../route.ts'
import { actionRoute } from './actions.ts'
import { bodyProblems, resourceRoutes } from './resource.ts'

/** What is not under one vendor: categories, response formats, routes and grants. */
export const registryRoutes = (app: App, server: ServerContext): void => {
  const registry = () => server.runtime.admin.registry
  resourceRoutes(app, {
    path: '/admin/v1/categories',
    one: 'a category',
    many: 'categories',
    ids: ['Category', 'Categories'],
    input: categoryInputSchema,
    change: categoryChangeSchema,
    view: categoryViewSchema,
    problems: { create: ['already_exists'], change: ['already_exists', 'in_use'], remove: ['in_use'] },
    store: () => registry().categories,
  })
  resourceRoutes(app, {
    path: '/admin/v1/routes',
    one: 'a route',
    many: 'routes',
    ids: ['Route', 'Routes'],
    input: routeInputSchema,
    change: routeChangeSchema,
    view: routeViewSchema,
    filter: z.strictObject({
      role: z.string().max(200).optional(),
      category: z.string().max(200).optional(),
    }),
    problems: { create: ['already_exists'] },
    summaries: { remove: 'Deletes a route' },
    store: () => registry().routes,
  })
  resourceRoutes(app, {
    path: '/admin/v1/grants',
    one: 'a grant',
    many: 'grants',
    ids: ['Grant', 'Grants'],
    input: grantInputSchema,
    change: grantChangeSchema,
    view: grantViewSchema,
    filter: z.strictObject({
      key_id: idSchema.optional(),
      business_id: businessIdSchema.optional(),
      user_id: idSchema.optional(),
    }),
    problems: { create: ['already_exists'], change: ['already_exists'] },
    summaries: { remove: 'Deletes a grant; a key without any is for all' },
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
    ids: ['ResponseFormat', 'ResponseFormats'],
  } as const
  resourceRoutes(app, {
    ...formats,
    input: formatInputSchema,
    change: formatChangeSchema,
    view: formatViewSchema,
    problems: { create: ['already_exists'], change: ['already_exists'], remove: ['in_use'] },
    summaries: { create: 'Adds a response format, if its paths parse and all its samples come out' },
    store: () => registry().formats,
  })
  actionRoute(app, server, formats, {
    name: 'test',
    summary: 'Reads an answer with a response format',
    body: formatTestInputSchema,
    answer: formatTestViewSchema,
    run: async (_, id, { raw }) => {
      const format = await registry().formats.get({}, id)
      return format && registry().trials.testFormat(format, raw)
    },
  })
  app.post(`${formats.path}/infer`, {
    schema: { body: inferInputSchema },
    config: {
      doc: {
        id: 'inferResponseFormat',
        tag: `admin: ${formats.many}`,
        role: 'operator',
        summary: 'Proposes a response format for an answer that is pasted in',
        answers: { 200: { description: 'The proposal, and what it reads', schema: inferViewSchema } },
        problems: [...bodyProblems],
      },
    },
    handler: async ({ body }) => registry().trials.inferFormat(body),
  })
}
