import { usageDimensions, usageFilterSchema, usageGroupSchema } from '../../../models/schemas/usage-report.ts'
import { pageSchema, plainPageQuery } from '../../../routes/parameters.ts'
import { type App, createDocs } from '../../../routes/route.ts'
import type { ServerContext } from '../plumbing/server-context.ts'

/** Usage and cost of model calls: sums of the ledger. */
export const usageRoutes = (app: App, { runtime }: ServerContext): void => {
  const describe = createDocs('admin: usage')

  app.get('/admin/v1/usage', {
    schema: { querystring: plainPageQuery.extend(usageFilterSchema.shape) },
    config: describe('operator', 'reportUsage', 'Sums requests, tokens and cost', {
      description: `One group for each combination of what \`group_by\` names (${usageDimensions.join(', ')}, separated by commas; none: everything together) and currency. \`from\` is included; a day as \`to\` counts as a whole, a time does not. Days are those of UTC. Tests by admins (\`test\` and \`probe\`) are in the sums of vendors, keys and models; by business they are a group of their own, with \`business_id\` null.`,
      responses: { 200: { description: 'One page', schema: pageSchema(usageGroupSchema) } },
    }),
    handler: ({ query }) => runtime.admin.usage.report(query),
  })
}
