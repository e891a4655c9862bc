import {
  auditFilterSchema,
  auditViewSchema,
  newOperatorSchema,
  operatorSchemas,
} from '../../../accounts/audit-schemas.ts'
import { omitUndefined, pageSchema, plainPageQuery, readSpan, spanQuery } from '../../../routes/parameters.ts'
import { resourceRoutes } from '../../../routes/resource-routes.ts'
import { type App, createDocs, respondsWith } from '../../../routes/route.ts'
import type { ServerContext } from '../plumbing/server-context.ts'

/** Admin tokens of people, and what was changed with them. */
export const auditRoutes = (app: App, { runtime }: ServerContext): void => {
  resourceRoutes(app, {
    path: '/admin/v1/operators',
    one: 'an operator',
    many: 'operators',
    ...operatorSchemas,
    created: newOperatorSchema,
    summaries: {
      create: 'Creates an admin token of a person; it is only in this response',
      remove: 'Revokes the token of an operator, at once and for good',
    },
    store: () => runtime.admin.operators,
  })
  app.get('/admin/v1/audit', {
    schema: { querystring: plainPageQuery.extend(auditFilterSchema.shape).extend(spanQuery.shape) },
    config: createDocs('admin: audit')(
      'operator',
      'listAudit',
      'Lists what admins changed, the latest first',
      respondsWith(200, 'One page', pageSchema(auditViewSchema)),
    ),
    handler: ({ query }) => runtime.admin.audit.list(omitUndefined({ ...query, ...readSpan(query) })),
  })
}
