import { pageSchema, plainPageQuery } from '../../routes/parameters.ts'
import { createDocs } from '../../routes/route.ts'
import { databaseRef } from '../core.ref.ts'
import { defineRoutes } from '../definitions.ts'
import { createUsageReport } from './usage-report.ts'
import { usageDimensions, usageFilterSchema, usageGroupSchema } from './usage-schemas.ts'

const describe = createDocs('admin: usage')

/** GET /admin/v1/usage */
export default defineRoutes({
  needs: { database: databaseRef },
  add(app, { database }) {
    const report = createUsageReport(database)
    app.get('/admin/v1/usage', {
      schema: { querystring: plainPageQuery.extend(usageFilterSchema.shape) },
      config: describe('operator', 'reportUsage', 'Sums requests, tokens and cost', {
        description: `One group for each combination of what \`group_by\` names (${usageDimensions.join(', ')}, separated by commas; none: everything together) and currency. \`from\` is included; a day as \`to\` counts as a whole, a time does not. Days are those of UTC. Tests by admins (\`test\` and \`probe\`) are in the sums of vendors, keys and models; by business they are a group of their own, with \`business_id\` null.`,
        responses: { 200: { description: 'One page', schema: pageSchema(usageGroupSchema) } },
      }),
      handler: ({ query }) => report(query),
    })
  },
})
