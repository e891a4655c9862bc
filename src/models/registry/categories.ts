import {
  createResourceStore,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import { MasonError } from '../../state/errors.ts'
import type { CategoryChange, CategoryInput, CategoryView } from '../schemas/catalog.ts'

type Row = ResourceRow & Pick<CategoryView, 'name' | 'built_in'>

/** Categories of models: the built-in ones and those of admins. */
export const createCategories = (context: ResourceStoreContext) =>
  createResourceStore<Row, CategoryInput, CategoryChange, CategoryView>(context, {
    name: 'category',
    prefix: 'cat',
    table: 'categories',
    idColumn: 'category_id',
    fields: ['name', 'description'],
    readOnly: ['built_in'],
    dependents: {
      by: 'name',
      query: `SELECT 'model' AS kind, model_id AS id, name FROM models WHERE category = $1
        UNION ALL SELECT 'endpoint', endpoint_id, name FROM endpoints WHERE $1 = ANY (categories)
        UNION ALL SELECT 'response format', format_id, name FROM response_formats WHERE category = $1
        UNION ALL SELECT 'route', route_id, 'category ' || category FROM routes WHERE category = $1 LIMIT 100`,
    },
    guard({ name, built_in }) {
      if (!built_in) return
      throw new MasonError('forbidden', `category "${name}" is built in`, {
        remedy: 'add a category with POST /admin/v1/categories',
      })
    },
  })
