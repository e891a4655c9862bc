import {
  businessSchemas,
  newTokenSchema,
  tokenSchemas,
  userSchemas,
} from '../../../accounts/account-schemas.ts'
import { businessQuery } from '../../../routes/parameters.ts'
import { resourceRoutes } from '../../../routes/resource-routes.ts'
import type { App } from '../../../routes/route.ts'
import type { ServerContext } from '../plumbing/server-context.ts'

/** Businesses, their API tokens and their users. */
export const accountsRoutes = (app: App, server: ServerContext): void => {
  const { runtime } = server
  // a business that is not created here is created with its first token, user or run
  resourceRoutes(app, {
    path: '/admin/v1/businesses',
    one: 'a business',
    many: 'businesses',
    ...businessSchemas,
    isPermanent: true,
    summaries: {
      change:
        'Changes the settings of a business; learning that is switched off stops at once and drops what is queued',
    },
    problems: { create: ['already_exists'] },
    remedy: 'GET /admin/v1/businesses lists them; POST creates one before its first run',
    store: () => runtime.admin.businesses,
  })
  // the token itself is only in the response that creates it
  resourceRoutes(app, {
    path: '/admin/v1/tokens',
    one: 'a token',
    many: 'tokens',
    ...tokenSchemas,
    created: newTokenSchema,
    filter: businessQuery,
    summaries: {
      create: 'Creates a token of a business; it is only in this response',
      get: 'Returns a token, without the token itself',
      change: 'Changes label or roles',
      remove: 'Revokes a token, at once and for good',
    },
    store: () => runtime.admin.tokens,
  })

  // profiles that feed `user_context`; a user belongs to a business
  resourceRoutes(app, {
    path: '/admin/v1/users',
    one: 'a user',
    many: 'users',
    ...userSchemas,
    filter: businessQuery,
    query: businessQuery,
    summaries: {
      list: 'Lists the users of a business, the latest changed first',
      create: 'Adds a profile of a user of a business',
      change: 'Replaces the profile of a user',
      remove: 'Deletes the profile of a user',
    },
    problems: { create: ['already_exists'] },
    remedy: 'name the business with ?business_id=; GET /admin/v1/users lists its users',
    store: () => runtime.admin.users,
  })
}
