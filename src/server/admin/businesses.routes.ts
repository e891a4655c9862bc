import { businessChangeSchema, businessInputSchema, businessViewSchema } from '../../state/admin.ts'
import type { App, ServerContext } from '../route.ts'
import { resourceRoutes } from './resource.ts'

/** Businesses: a business is the tenant. One that is not made here is made with its first token, user or run. */
export const adminBusinessesRoutes = (app: App, { runtime }: ServerContext): void =>
  resourceRoutes(app, {
    path: '/admin/v1/businesses',
    one: 'a business',
    many: 'businesses',
    ids: ['Business', 'Businesses'],
    input: businessInputSchema,
    change: businessChangeSchema,
    view: businessViewSchema,
    isKept: true,
    summaries: {
      change:
        'Changes what holds for the runs of a business; learning switched off holds from now on and drops what waits',
    },
    problems: { create: ['already_exists'] },
    remedy: 'GET /admin/v1/businesses lists them; POST makes one before its first run',
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
