import type { Sql } from '../../state/ports.ts'
import type { ModelChange, ModelInput, ModelView, Prices } from '../../state/registry/catalog.ts'
import type { Fault } from '../../state/registry/common.ts'
import type { UnreadAnswer } from '../../state/registry/trial.ts'
import { one } from '../database/database.ts'
import { inUse, type User } from './faults.ts'
import { categoryFaults } from './lookups.ts'
import { guardSettings } from './settings-rows.ts'
import { createStore, type Scope, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Row = StoredRow & Omit<ModelView, 'id' | 'created_at' | 'updated_at'>

/** Models of one vendor, under the aliases by which callers know them. */
export const createModels = (context: StoreContext) => {
  const store = createStore<Row, ModelInput, ModelChange, ModelView>(context, {
    name: 'model',
    prefix: 'mod',
    table: 'models',
    idColumn: 'model_id',
    columns: `t.vendor_id, t.name, t.upstream_name, t.version, t.category, t.endpoint_id, t.dialect, t.context_window,
      t.max_output, t.prices, t.response_format_id, t.capabilities, t.status`,
    scopedBy: ['vendor_id'],
    parent: { name: 'vendor', table: 'vendors', column: 'vendor_id' },
    viewOf: (row) => ({ vendor_id: row.vendor_id, ...inputOf(row), ...timesOf(row) }),
    inputOf,
    merge: (before, change) => ({ ...before, ...change }) as ModelInput,
    async faultsOf(sql, input, { id, scope: { vendor_id = '' }, before }) {
      if (before && before.name !== input.name) {
        const users = await usersOf(sql, before)
        if (users.length > 0) throw inUse('model', id, users)
      }
      return [
        ...(await categoryFaults(sql, [input.category], () => '/category')),
        ...(await placeFaults(sql, input, vendor_id)),
        ...(await currencyFaults(sql, input.prices, vendor_id, id)),
      ]
    },
    valuesOf: ({ prices, ...input }, { scope: { vendor_id }, before }) => ({
      name: input.name,
      upstream_name: input.upstream_name,
      version: input.version ?? null,
      category: input.category,
      endpoint_id: input.endpoint_id,
      dialect: input.dialect,
      context_window: input.context_window ?? null,
      max_output: input.max_output ?? null,
      prices: prices ? JSON.stringify(prices) : null,
      response_format_id: input.response_format_id ?? null,
      capabilities: input.capabilities,
      status: input.status,
      ...(before === null && { vendor_id }),
    }),
    usersOf,
    guard: guardSettings('model', ['name', 'upstream_name']),
    removeWith: async (sql, { id }) =>
      void (await sql.query('DELETE FROM unread_answers WHERE model_id = $1', [id])),
  })
  return {
    ...store,
    /** Answers of a model that its format could not read, the latest first. Null: no such model. */
    async unread(scope: Scope, id: string): Promise<{ data: UnreadAnswer[] } | null> {
      if (!(await store.get(scope, id))) return null
      const { rows } = await context.database.query<Omit<UnreadAnswer, 'at'> & { at: Date }>(
        `SELECT answer_id::text AS id, at, format_id, place, raw FROM unread_answers WHERE model_id = $1
         ORDER BY answer_id DESC LIMIT 100`,
        [id],
      )
      return { data: rows.map(({ at, ...row }) => ({ ...row, at: at.toISOString() })) }
    },
  }
}

const inputOf = ({ id: _, created_at: __, updated_at: ___, at: ____, vendor_id: _____, ...input }: Row) =>
  input

/** Routes and scenarios name models by their aliases. */
const usersOf = async (sql: Sql, { name }: Row): Promise<User[]> => {
  const { rows } = await sql.query<User>(
    `SELECT 'route' AS kind, route_id AS id, COALESCE('role ' || role, 'category ' || category) AS name FROM routes
     WHERE EXISTS (SELECT 1 FROM json_array_elements(models) AS entry WHERE entry ->> 'model' = $1)
     UNION ALL SELECT 'scenario', scenario_id, name FROM scenarios
     WHERE EXISTS (SELECT 1 FROM json_each_text(models) AS entry WHERE entry.value = $1) LIMIT 100`,
    [name],
  )
  return rows
}

type Endpoint = { vendor_id: string; name: string; protocol: 'openai' | 'http'; categories: string[] }

/** Whether it is reached at an endpoint of its vendor, and its answers can be read. */
const placeFaults = async (sql: Sql, input: ModelInput, vendorId: string): Promise<Fault[]> => {
  const endpoint = await one<Endpoint>(
    sql,
    'SELECT vendor_id, name, protocol, categories FROM endpoints WHERE endpoint_id = $1',
    [input.endpoint_id],
  )
  return [
    ...endpointFaults(endpoint, input, vendorId),
    ...(await formatFaults(sql, input.response_format_id ?? null, endpoint?.protocol === 'http')),
  ]
}

const endpointFaults = (endpoint: Endpoint | null, input: ModelInput, vendorId: string): Fault[] => {
  const pointer = '/endpoint_id'
  if (!endpoint) return [{ pointer, detail: `there is no endpoint "${input.endpoint_id}"` }]
  if (endpoint.vendor_id !== vendorId) return [{ pointer, detail: 'is an endpoint of another vendor' }]
  const { categories, name } = endpoint
  if (categories.length === 0 || categories.includes(input.category)) return []
  return [{ pointer: '/category', detail: `endpoint "${name}" serves ${categories.join(', ')} only` }]
}

const formatFaults = async (sql: Sql, id: string | null, needed: boolean): Promise<Fault[]> => {
  const pointer = '/response_format_id'
  if (id === null)
    return needed ? [{ pointer, detail: 'is required: the endpoint speaks http, so data must say how' }] : []
  const format = await one<{ definition: { request?: unknown } }>(
    sql,
    'SELECT definition FROM response_formats WHERE format_id = $1',
    [id],
  )
  if (!format) return [{ pointer, detail: `there is no response format "${id}"` }]
  if (!needed || format.definition.request != null) return []
  return [{ pointer, detail: 'has no request template, and the endpoint speaks http' }]
}

/** Limits of a key are in one currency, so its vendor has one. */
const currencyFaults = async (
  sql: Sql,
  prices: Prices | null | undefined,
  vendorId: string,
  id: string,
): Promise<Fault[]> => {
  if (!prices) return []
  const { rows } = await sql.query<{ name: string; prices: Prices }>(
    'SELECT name, prices FROM models WHERE vendor_id = $1 AND model_id <> $2 AND prices IS NOT NULL',
    [vendorId, id],
  )
  const other = rows.find((row) => row.prices.currency !== prices.currency)
  if (!other) return []
  const detail = `must be ${other.prices.currency}, as of the vendor's model "${other.name}": a vendor has one currency`
  return [{ pointer: '/prices/currency', detail }]
}
