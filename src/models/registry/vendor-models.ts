import { queryOne } from '../../infra/database/database.ts'
import { type PageRequest, readPage } from '../../infra/database/pagination.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceScope,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { Page } from '../../state/run-view.ts'
import {
  type ModelChange,
  type ModelInput,
  type ModelView,
  modelSchemas,
  type Prices,
} from '../schemas/catalog.ts'
import type { UnreadAnswer } from '../schemas/model-probe.ts'
import { type HealthColumns, healthColumns, resetHealth, toHealthView } from './health-columns.ts'
import { findCategoryErrors } from './reference-checks.ts'
import { createSettingsGuard } from './settings-guard.ts'
import { ofVendor } from './vendors.ts'

/** The models of one vendor, with the aliases that callers use. */
export const createModels = (context: ResourceStoreContext & { healthChanged(): void }) => {
  const store = createResourceStore<ResourceRow & HealthColumns, typeof modelSchemas>(context, {
    name: 'model',
    prefix: 'mod',
    table: 'models',
    idColumn: 'model_id',
    input: modelSchemas.input,
    json: ['prices'],
    columns: healthColumns,
    joins: "LEFT JOIN model_health h ON h.subject = 'model' AND h.subject_id = t.model_id",
    toView: (row) => ({ health: toHealthView(row) }),
    parent: ofVendor,
    findErrors: async (sql, input, { id, scope: { vendor_id = '' } }) => [
      ...(await findCategoryErrors(sql, [input.category], () => '/category')),
      ...(await findPlacementErrors(sql, input, vendor_id)),
      ...(await findCurrencyErrors(sql, input.prices, vendor_id, id)),
    ],
    // routes and scenarios name models by their aliases
    dependents: {
      by: 'name',
      query: `SELECT 'route' AS kind, route_id AS id, COALESCE('role ' || role, 'category ' || category) AS name FROM routes
      WHERE EXISTS (SELECT 1 FROM json_array_elements(models) AS entry WHERE entry ->> 'model' = $1)
      UNION ALL SELECT 'scenario', scenario_id, name FROM scenarios
      WHERE EXISTS (SELECT 1 FROM json_each_text(models) AS entry WHERE entry.value = $1) LIMIT 100`,
    },
    guard: createSettingsGuard('model', ['name', 'upstream_name']),
    async removeDependents(sql, { id }) {
      await sql.query('DELETE FROM unread_answers WHERE model_id = $1', [id])
      await resetHealth(sql, 'model', id)
    },
  })
  return {
    ...store,
    /** A change resets its health: it may be of what the vendor refused. */
    async change(scope: ResourceScope, id: string, change: ModelChange): Promise<ModelView | null> {
      const model = await store.change(scope, id, change)
      if (!model) return null
      await resetHealth(context.database, 'model', id)
      context.healthChanged()
      return store.get(scope, id)
    },
    /** Responses of a model that its format could not read, the latest first. Null: no such model. */
    async unread(scope: ResourceScope, id: string, page: PageRequest): Promise<Page<UnreadAnswer> | null> {
      if (!(await store.get(scope, id))) return null
      const list = {
        select: `answer_id::text AS id, a.at, format_id, place, raw`,
        from: 'unread_answers a',
        where: 'model_id = $1',
        values: [id],
        at: 'a.at',
        id: 'answer_id::text',
      }
      type Row = Omit<UnreadAnswer, 'at'> & { at: Date }
      return readPage(context.database, list, page, ({ at, ...row }: Row) => ({
        ...row,
        at: at.toISOString(),
      }))
    },
  }
}

type Endpoint = { vendor_id: string; name: string; protocol: 'openai' | 'http'; categories: string[] }

/** A model needs an endpoint of its vendor, and a format that reads its responses. */
const findPlacementErrors = async (sql: Sql, input: ModelInput, vendorId: string): Promise<FieldError[]> => {
  const endpoint = await queryOne<Endpoint>(
    sql,
    'SELECT vendor_id, name, protocol, categories FROM endpoints WHERE endpoint_id = $1',
    [input.endpoint_id],
  )
  return [
    ...findEndpointErrors(endpoint, input, vendorId),
    ...(await findFormatErrors(sql, input.response_format_id ?? null, endpoint?.protocol === 'http')),
  ]
}

const findEndpointErrors = (endpoint: Endpoint | null, input: ModelInput, vendorId: string): FieldError[] => {
  const pointer = '/endpoint_id'
  if (!endpoint) return [{ pointer, detail: `there is no endpoint "${input.endpoint_id}"` }]
  if (endpoint.vendor_id !== vendorId) return [{ pointer, detail: 'is an endpoint of another vendor' }]
  const { categories, name } = endpoint
  if (categories.length === 0 || categories.includes(input.category)) return []
  return [{ pointer: '/category', detail: `endpoint "${name}" serves ${categories.join(', ')} only` }]
}

const findFormatErrors = async (sql: Sql, id: string | null, needed: boolean): Promise<FieldError[]> => {
  const pointer = '/response_format_id'
  if (id === null)
    return needed ? [{ pointer, detail: 'is required: the endpoint uses the http protocol' }] : []
  const format = await queryOne<{ definition: { request?: unknown } }>(
    sql,
    'SELECT definition FROM response_formats WHERE format_id = $1',
    [id],
  )
  if (!format) return [{ pointer, detail: `there is no response format "${id}"` }]
  if (!needed || format.definition.request != null) return []
  return [{ pointer, detail: 'has no request template, and the endpoint uses the http protocol' }]
}

/** The limits of a key are in one currency, so its vendor has one. */
const findCurrencyErrors = async (
  sql: Sql,
  prices: Prices | null | undefined,
  vendorId: string,
  id: string,
): Promise<FieldError[]> => {
  if (!prices) return []
  const { rows } = await sql.query<{ name: string; prices: Prices }>(
    'SELECT name, prices FROM models WHERE vendor_id = $1 AND model_id <> $2 AND prices IS NOT NULL',
    [vendorId, id],
  )
  const other = rows.find((row) => row.prices.currency !== prices.currency)
  if (!other) return []
  const detail = `must be ${other.prices.currency}, as for the vendor's model "${other.name}": a vendor has one currency`
  return [{ pointer: '/prices/currency', detail }]
}
