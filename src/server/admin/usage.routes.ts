import {
  reconcileInputSchema,
  reconciliationSchema,
  usageDimensions,
  usageFilterSchema,
  usageGroupSchema,
} from '../../state/registry/usage.ts'
import { plainPageQuery } from '../parameters.ts'
import type { App, RouteDoc, ServerContext } from '../route.ts'
import { pageSchema } from '../wire.ts'
import { bodyProblems } from './resource.ts'

/** What model calls cost: sums of the ledger, and how they compare with a vendor's own count. */
export const adminUsageRoutes = (app: App, { runtime }: ServerContext): void => {
  const doc = (part: Omit<RouteDoc, 'tag' | 'role'>): { doc: RouteDoc } => ({
    doc: { tag: 'admin: usage', role: 'operator', ...part },
  })

  app.get('/admin/v1/usage', {
    schema: { querystring: plainPageQuery.extend(usageFilterSchema.shape) },
    config: doc({
      id: 'reportUsage',
      summary: 'Sums requests, tokens and cost',
      description: `One group for each combination of what \`group_by\` names (${usageDimensions.join(', ')}, separated by commas; none: everything together) and currency. \`from\` is included; a day as \`to\` counts as a whole, a time does not. Days are those of UTC. Trials by admins (\`test\` and \`probe\`) are in the sums of vendors, keys and models; by business they are a group of their own, with \`business_id\` null.`,
      answers: { 200: { description: 'One page', schema: pageSchema(usageGroupSchema) } },
    }),
    handler: ({ query }) => runtime.admin.usage.report(query),
  })

  app.post('/admin/v1/usage/reconcile', {
    schema: { body: reconcileInputSchema },
    config: doc({
      id: 'reconcileUsage',
      summary: "Compares the ledger with a vendor's export",
      description:
        'By day of UTC and model: ours, theirs, the difference, and what one of both does not have. Nothing is changed.',
      answers: { 200: { description: 'The comparison', schema: reconciliationSchema } },
      problems: [...bodyProblems],
    }),
    handler: ({ body }) => runtime.admin.usage.reconcile(body),
  })
}
