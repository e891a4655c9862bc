import type { RouteChange, RouteInput, RouteView } from '../../state/registry/routing.ts'
import { categoryFaults, modelFaults } from './lookups.ts'
import { createStore, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Row = StoredRow & Pick<RouteView, 'role' | 'category' | 'models' | 'strategy'>

/** Which models serve a role or a category. */
export const createRoutes = (context: StoreContext) =>
  createStore<Row, RouteInput, RouteChange, RouteView>(context, {
    name: 'route',
    prefix: 'rou',
    table: 'routes',
    idColumn: 'route_id',
    columns: 't.role, t.category, t.models, t.strategy',
    scopedBy: ['role', 'category'],
    viewOf: (row) => ({ ...inputOf(row), ...timesOf(row) }),
    inputOf,
    merge: (before, change) => ({ ...before, ...change }) as RouteInput,
    faultsOf: async (sql, { category, models }) => [
      ...(await categoryFaults(sql, category == null ? [] : [category], () => '/category')),
      ...(await modelFaults(
        sql,
        models.map(({ model }) => model),
      )),
    ],
    valuesOf: ({ role, category, models, strategy }) => ({
      role: role ?? null,
      category: category ?? null,
      models: JSON.stringify(models),
      strategy,
    }),
    usersOf: async () => [],
  })

const inputOf = ({ role, category, models, strategy }: Row) => ({ role, category, models, strategy })
