import {
  businessSchemas,
  newTokenSchema,
  tokenSchemas,
  userSchemas,
} from '../../../accounts/account-schemas.ts'
import { budgetSchemas } from '../../../accounts/budget-schemas.ts'
import type { ResourceScope } from '../../../models/registry/resource-store.ts'
import { businessQuery } from '../plumbing/parameters.ts'
import type { App, ServerContext } from '../plumbing/route.ts'
import { resourceRoutes } from './resource-routes.ts'

/** Businesses, their API tokens, their users and their budgets. */
export const accountsRoutes = (app: App, server: ServerContext): void => {
  const { runtime } = server
  // a business that is not created here is created with its first token, user or run
  resourceRoutes(app, {
    path: '/admin/v1/businesses',
    one: 'a business',
    many: 'businesses',
    ids: ['Business', 'Businesses'],
    ...businessSchemas,
    isPermanent: true,
    summaries: {
      change:
        'Changes the settings of a business; learning that is switched off stops at once and drops what is queued',
    },
    problems: { create: ['already_exists'] },
    remedy: 'GET /admin/v1/businesses lists them; POST creates one before its first run',
    store: () => {
      const { businesses } = runtime.admin
      return {
        list: (_, page) => businesses.list(page),
        create: (_, input) => businesses.create(input),
        get: (_, id) => businesses.get(id),
        change: (_, id, change) => businesses.change(id, change),
      }
    },
  })
  // the token itself is only in the response that creates it
  resourceRoutes(app, {
    path: '/admin/v1/tokens',
    one: 'a token',
    many: 'tokens',
    ids: ['Token', 'Tokens'],
    ...tokenSchemas,
    created: newTokenSchema,
    filter: businessQuery,
    summaries: {
      create: 'Creates a token of a business; it is only in this response',
      get: 'Returns a token, without the token itself',
      change: 'Changes label or roles',
      remove: 'Revokes a token, at once and for good',
    },
    store: () => {
      const { tokens } = runtime.admin
      return {
        list: (scope, page) => tokens.list({ ...scope, ...page }),
        create: (_, input) => tokens.create(input),
        get: (_, id) => tokens.get(id),
        change: (_, id, change) => tokens.change(id, change),
        remove: (_, id) => tokens.revoke(id),
      }
    },
  })

  // profiles that feed `user_context`; a user belongs to a business
  resourceRoutes(app, {
    path: '/admin/v1/users',
    one: 'a user',
    many: 'users',
    ids: ['User', 'Users'],
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
    store: () => {
      const { users } = runtime.admin
      return {
        list: (scope, page) => users.list({ ...page, business_id: readBusinessId(scope) }),
        create: (_, input) => users.create(input),
        get: (scope, id) => users.get(readBusinessId(scope), id),
        change: (scope, id, { profile }) => users.change(readBusinessId(scope), id, profile),
        remove: (scope, id) => users.remove(readBusinessId(scope), id),
      }
    },
  })
  budgetRoutes(app, server)
}

/** Budgets: what a business, a user or a token may spend. */
const budgetRoutes = (app: App, { runtime }: ServerContext): void =>
  resourceRoutes(app, {
    path: '/admin/v1/budgets',
    one: 'a budget',
    many: 'budgets',
    ids: ['Budget', 'Budgets'],
    ...budgetSchemas,
    filter: businessQuery,
    summaries: {
      create: 'Adds a budget of a business, or of one of its users or tokens',
      get: 'Returns a budget, with what is spent and when it resets',
      change: 'Changes the limits of a budget; null takes one away',
      remove: 'Deletes a budget; what is spent still counts for a new one',
    },
    problems: { create: ['already_exists'] },
    store: () => {
      const { budgets } = runtime.admin
      return {
        list: (scope, page) => budgets.list({ ...scope, ...page }),
        create: (_, input) => budgets.create(input),
        get: (_, id) => budgets.get(id),
        change: (_, id, change) => budgets.change(id, change),
        remove: (_, id) => budgets.remove(id),
      }
    },
  })

const readBusinessId = ({ business_id = 'default' }: ResourceScope): string => business_id
