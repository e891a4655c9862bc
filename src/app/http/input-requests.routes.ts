import { idSchema } from '../../state/run-request.ts'
import { inputRequestStatusSchema, inputRequestViewSchema } from '../../state/run-view.ts'
import { omitUndefined, pageSchema, sessionsQuery } from './plumbing/parameters.ts'
import { type App, createDocs, respondsWith } from './plumbing/route.ts'

const describe = createDocs('runs')
const inputRequestsQuery = sessionsQuery.extend({
  status: inputRequestStatusSchema.describe('Of this status only').optional(),
  run_id: idSchema.describe('Of this run only').optional(),
})

/** The questions that runs have asked people. */
export const inputRequestsRoutes = (app: App): void => {
  app.get('/v1/input-requests', {
    schema: { querystring: inputRequestsQuery },
    config: describe(
      'read',
      'listInputRequests',
      'Lists the questions that runs have asked, the latest first; POST /v1/runs/{id}/input answers one',
      respondsWith(200, 'One page', pageSchema(inputRequestViewSchema)),
    ),
    handler: ({ business, query: { business_id: _, ...filter } }) =>
      business.inputRequests(omitUndefined(filter)),
  })
}
