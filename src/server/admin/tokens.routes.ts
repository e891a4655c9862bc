import { newTokenSchema, tokenChangeSchema, tokenInputSchema, tokenViewSchema } from '../../state/admin.ts'
import { businessQuery } from '../parameters.ts'
import type { App, ServerContext } from '../route.ts'
import { resourceRoutes } from './resource.ts'

/** API tokens of businesses: a token is shown once, when it is made. */
export const adminTokensRoutes = (app: App, { runtime }: ServerContext): void =>
  resourceRoutes(app, {
    path: '/admin/v1/tokens',
    one: 'a token',
    many: 'tokens',
    ids: ['Token', 'Tokens'],
    input: tokenInputSchema,
    change: tokenChangeSchema,
    view: tokenViewSchema,
    made: newTokenSchema,
    filter: businessQuery,
    summaries: {
      create: 'Makes a token of a business; it is shown only in this answer',
      get: 'Shows a token, without the token itself',
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
