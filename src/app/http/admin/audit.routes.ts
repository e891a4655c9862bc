import {
  auditFilterSchema,
  auditViewSchema,
  newOperatorSchema,
  operatorSchemas,
} from '../../../accounts/audit-schemas.ts'
import { omitUndefined, pageSchema, plainPageQuery, readSpan, spanQuery } from '../plumbing/parameters.ts'
import { type App, createDocs, respondsWith, type ServerContext } from '../plumbing/route.ts'
import { resourceRoutes } from './resource-routes.ts'

/** Admin tokens of people, and what was changed with them. */
export const auditRoutes = (app: App, { runtime }: ServerContext): void => {
  resourceRoutes(app, {
    path: '/admin/v1/operators',
    one: 'an operator',
    many: 'operators',
    ids: ['Operator', 'Operators'],
    ...operatorSchemas,
    created: newOperatorSchema,
    summaries: {
      create: 'Creates an admin token of a person; it is only in this response',
      remove: 'Revokes the token of an operator, at once and for good',
    },
    store: () => {
      const { operators } = runtime.admin
      return {
        list: (_, page) => operators.list(page),
        create: (_, input) => operators.create(input),
        get: (_, id) => operators.get(id),
        change: (_, id, change) => operators.change(id, omitUndefined(change)),
        remove: (_, id) => operators.revoke(id),
      }
    },
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
