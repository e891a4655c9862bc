import { z } from 'zod'
import { createCountSchema } from '../../routes/parameters.ts'
import { createDocs, respondsWith } from '../../routes/route.ts'
import { backlogRef, clockRef, databaseRef, deadWebhooksRef, rejectedJobsRef } from '../core.ref.ts'
import { defineRoutes, optional } from '../definitions.ts'
import { createOverview } from './overview.ts'
import { overviewSchema, workerViewSchema } from './overview-schemas.ts'

const describe = createDocs('admin: operations')
const overviewQuery = z.strictObject({
  hours: createCountSchema(1, 24 * 31)
    .describe('The span, which ends now')
    .default(24),
})

/** What operators watch: workers, and what changed lately. */
export default defineRoutes({
  needs: {
    database: databaseRef,
    clock: clockRef,
    readBacklog: backlogRef,
    rejectedJobs: optional(rejectedJobsRef),
    deadWebhooks: optional(deadWebhooksRef),
  },
  add(app, { database, clock, readBacklog, ...counts }) {
    const overview = createOverview(database, clock, readBacklog, counts)

    app.get('/admin/v1/workers', {
      config: describe(
        'operator',
        'listWorkers',
        'Lists the workers that are up',
        respondsWith(200, 'The workers', z.strictObject({ data: z.array(workerViewSchema) })),
      ),
      handler: async () => ({ data: await overview.workers() }),
    })

    app.get('/admin/v1/overview', {
      schema: { querystring: overviewQuery },
      config: describe(
        'operator',
        'getOverview',
        'What changed lately, and what waits now',
        respondsWith(200, 'The overview', overviewSchema),
      ),
      handler: ({ query: { hours } }) => overview.read(hours),
    })
  },
})
