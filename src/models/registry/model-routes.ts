import type { RouteChange, RouteInput, RouteView } from '../schemas/routing.ts'
import { findAliasErrors, findCategoryErrors } from './reference-checks.ts'
import { createResourceStore, type ResourceRow, type ResourceStoreContext } from './resource-store.ts'

type Row = ResourceRow & Pick<RouteView, 'role' | 'category' | 'models' | 'strategy'>

/** Which models serve a role or a category. */
export const createRoutes = (context: ResourceStoreContext) =>
  createResourceStore<Row, RouteInput, RouteChange, RouteView>(context, {
    name: 'route',
    prefix: 'rou',
    table: 'routes',
    idColumn: 'route_id',
    columns: 't.role, t.category, t.models, t.strategy',
    scopedBy: ['role', 'category'],
    toInput,
    findErrors: async (sql, { category, models }) => [
      ...(await findCategoryErrors(sql, category == null ? [] : [category], () => '/category')),
      ...(await findAliasErrors(
        sql,
        models.map(({ model }) => model),
      )),
    ],
    toValues: ({ role, category, models, strategy }) => ({
      role: role ?? null,
      category: category ?? null,
      models: JSON.stringify(models),
      strategy,
    }),
  })

const toInput = ({ role, category, models, strategy }: Row) => ({ role, category, models, strategy })
