import { createIdParams, omitUndefined, pageSchema, plainPageQuery } from '../../../routes/parameters.ts'
import { describeAdmin, handleOne } from '../../../routes/resource-routes.ts'
import { type App, respondsWith } from '../../../routes/route.ts'
import { effectResolutionSchema, effectStatusSchema, effectViewSchema } from '../../../state/operations.ts'
import type { ServerContext } from '../plumbing/server-context.ts'

const resource = {
  path: '/admin/v1/effects',
  one: 'a side effect',
  many: 'side effects',
  ids: ['Effect', 'Effects'],
} as const

const effectParams = createIdParams('side effect')
const effectsQuery = plainPageQuery.extend({
  status: effectStatusSchema.describe('Of this status only').optional(),
})
/** What operators settle: side effects whose outcome is unknown. */
export const operationsRoutes = (app: App, { runtime }: ServerContext): void => {
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
