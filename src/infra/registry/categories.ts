import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { CategoryChange, CategoryInput, CategoryView } from '../../state/registry/catalog.ts'
import { inUse, type User } from './faults.ts'
import { createStore, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Row = StoredRow & { name: string; description: string; built_in: boolean }

/** What models are for: those that are built in, and others beside them. */
export const createCategories = (context: StoreContext) =>
  createStore<Row, CategoryInput, CategoryChange, CategoryView>(context, {
    name: 'category',
    prefix: 'cat',
    table: 'categories',
    idColumn: 'category_id',
    columns: 't.name, t.description, t.built_in',
    scopedBy: [],
    viewOf: ({ name, description, built_in, ...row }) => ({ name, description, built_in, ...timesOf(row) }),
    inputOf: ({ name, description }) => ({ name, description }),
    merge: (before, change) => ({ ...before, ...change }) as CategoryInput,
    async faultsOf(sql, { name }, { id, before }) {
      if (before === null || before.name === name) return []
      const users = await usersOf(sql, before)
      if (users.length > 0) throw inUse('category', id, users)
      return []
    },
    valuesOf: ({ name, description }) => ({ name, description }),
    usersOf,
    guard({ name, built_in }) {
      if (!built_in) return
      throw new MasonError('forbidden', `category "${name}" is built in`, {
        remedy: 'add one of your own with POST /admin/v1/categories',
      })
    },
  })

const usersOf = async (sql: Sql, { name }: Row): Promise<User[]> => {
  const { rows } = await sql.query<User>(
    `SELECT 'model' AS kind, model_id AS id, name FROM models WHERE category = $1
     UNION ALL SELECT 'endpoint', endpoint_id, name FROM endpoints WHERE $1 = ANY (categories)
     UNION ALL SELECT 'response format', format_id, name FROM response_formats WHERE category = $1
     UNION ALL SELECT 'route', route_id, 'category ' || category FROM routes WHERE category = $1 LIMIT 100`,
    [name],
  )
  return rows
}
