import { z } from 'zod'
import {
  effectResolutionSchema,
  effectStatusSchema,
  effectViewSchema,
  overviewSchema,
  workerViewSchema,
} from '../../../state/operations.ts'
import {
  createCountSchema,
  createIdParams,
  omitUndefined,
  pageSchema,
  plainPageQuery,
} from '../plumbing/parameters.ts'
import { type App, createDocs, respondsWith, type ServerContext } from '../plumbing/route.ts'
import { describeAdmin, handleOne } from './resource-routes.ts'

const resource = {
  path: '/admin/v1/effects',
  one: 'a side effect',
  many: 'side effects',
  ids: ['Effect', 'Effects'],
} as const

const describe = createDocs('admin: operations')
const effectParams = createIdParams('side effect')
const effectsQuery = plainPageQuery.extend({
  status: effectStatusSchema.describe('Of this status only').optional(),
})
const overviewQuery = z.strictObject({
  hours: createCountSchema(1, 24 * 31)
    .describe('The span, which ends now')
    .default(24),
})

/** What operators watch and settle: workers, what changed lately, and side effects whose outcome is unknown. */
export const operationsRoutes = (app: App, { runtime }: ServerContext): void => {
  app.get('/admin/v1/workers', {
    config: describe(
      'operator',
      'listWorkers',
      'Lists the workers that are up',
      respondsWith(200, 'The workers', z.strictObject({ data: z.array(workerViewSchema) })),
    ),
    handler: async () => ({ data: await runtime.admin.overview.workers() }),
  })

  app.get('/admin/v1/overview', {
    schema: { querystring: overviewQuery },
    config: describe(
      'operator',
      'getOverview',
      'What changed lately, and what waits now',
      respondsWith(200, 'The overview', overviewSchema),
    ),
    handler: ({ query: { hours } }) => runtime.admin.overview.read(hours),
  })

  app.get(resource.path, {
    schema: { querystring: effectsQuery },
    config: describeAdmin(
      resource,
      'listEffects',
      'Lists side effects, the latest first',
      respondsWith(200, 'One page', pageSchema(effectViewSchema)),
    ),
    handler: ({ query }) => runtime.admin.effects.list(omitUndefined(query)),
  })

  app.post(`${resource.path}/:id/resolve`, {
    schema: { params: effectParams, body: effectResolutionSchema },
    config: describeAdmin(
      resource,
      'resolveEffect',
      'Says whether an unknown side effect took place; its run goes on',
      {
        ...respondsWith(200, 'The side effect', effectViewSchema),
        problems: ['input_answered', 'in_use'],
      },
    ),
    handler: (request) =>
      handleOne(resource, (_, id) => runtime.admin.effects.resolve(id, omitUndefined(request.body)))(request),
  })
}
