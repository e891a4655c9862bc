import {
  createResourceStore,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import type { RouteChange, RouteInput, RouteView } from '../schemas/routing.ts'
import { findAliasErrors, findCategoryErrors } from './reference-checks.ts'

/** Which models serve a role or a category. */
export const createRoutes = (context: ResourceStoreContext) =>
  createResourceStore<ResourceRow, RouteInput, RouteChange, RouteView>(context, {
    name: 'route',
    prefix: 'rou',
    table: 'routes',
    idColumn: 'route_id',
    fields: ['role', 'category', 'models', 'strategy'],
    json: ['models'],
    scopedBy: ['role', 'category'],
    findErrors: async (sql, { category, models }) => [
      ...(await findCategoryErrors(sql, category == null ? [] : [category], () => '/category')),
      ...(await findAliasErrors(
        sql,
        models.map(({ model }) => model),
        (index) => `/models/${index}/model`,
        true,
      )),
    ],
  })
