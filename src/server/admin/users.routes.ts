import { userChangeSchema, userInputSchema, userViewSchema } from '../../state/admin.ts'
import { businessQuery } from '../parameters.ts'
import type { App, ServerContext } from '../route.ts'
import { resourceRoutes } from './resource.ts'

const businessOf = ({ business_id = 'default' }: { business_id?: string }): string => business_id

/** Profiles that feed `user_context`; a user belongs to a business. */
export const adminUsersRoutes = (app: App, { runtime }: ServerContext): void =>
  resourceRoutes(app, {
    path: '/admin/v1/users',
    one: 'a user',
    many: 'users',
    ids: ['User', 'Users'],
    input: userInputSchema,
    change: userChangeSchema,
    view: userViewSchema,
    filter: businessQuery,
    query: businessQuery,
    summaries: {
      list: 'Lists the users of a business, the latest changed first',
      create: 'Keeps a profile for a user of a business',
      change: 'Puts a new profile in the place of the old one',
      remove: 'Forgets the profile of a user',
    },
    problems: { create: ['already_exists'] },
    remedy: 'name the business with ?business_id=; GET /admin/v1/users lists its users',
    store: () => {
      const { users } = runtime.admin
      return {
        list: (scope, page) => users.list({ ...page, business_id: businessOf(scope) }),
        create: (_, input) => users.create(input),
        get: (scope, id) => users.get(businessOf(scope), id),
        change: (scope, id, { profile }) => users.change(businessOf(scope), id, profile),
        remove: (scope, id) => users.remove(businessOf(scope), id),
      }
    },
  })
