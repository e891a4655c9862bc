import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { EndpointChange, EndpointInput, EndpointView, ModelInput } from '../../state/registry/catalog.ts'
import type { Fault } from '../../state/registry/common.ts'
import type { FormatInput } from '../../state/registry/response-format.ts'
import { addressFaults, plainlyPrivate } from '../egress/urls.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import type { User } from './faults.ts'
import { forgetHealth, type HealthColumns, healthColumns, healthOf } from './health.ts'
import { categoryFaults } from './lookups.ts'
import { type HeaderColumns, openHeaders, sealHeaders, shownHeaders } from './sealed-headers.ts'
import { guardSettings } from './settings-rows.ts'
import { createStore, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Row = StoredRow &
  HealthColumns &
  HeaderColumns &
  Omit<EndpointView, 'id' | 'created_at' | 'updated_at' | 'headers' | 'health'>

/** Headers: null where they cannot be opened and stay as they are. */
type Known = Omit<EndpointInput, 'headers'> & { headers: EndpointInput['headers'] | null }

/** Where models of one vendor are reached. */
export const createEndpoints = (context: StoreContext & { masterKeys: MasterKeys }) => {
  const { masterKeys } = context
  return createStore<Row, Known, EndpointChange, EndpointView>(context, {
    name: 'endpoint',
    prefix: 'end',
    table: 'endpoints',
    idColumn: 'endpoint_id',
    columns: `t.vendor_id, t.name, t.base_url, t.protocol, t.categories, t.master_key, t.wrapped_key, t.sealed_headers,
      t.timeouts, t.allow_private, t.status, ${healthColumns}`,
    joins: "LEFT JOIN model_health h ON h.subject = 'endpoint' AND h.subject_id = t.endpoint_id",
    scopedBy: ['vendor_id'],
    parent: { name: 'vendor', table: 'vendors', column: 'vendor_id' },
    viewOf: (row) => ({
      vendor_id: row.vendor_id,
      ...plainOf(row),
      allow_private: row.allow_private,
      headers: shownHeaders(() => openHeaders(row, masterKeys)),
      health: healthOf(row),
      ...timesOf(row),
    }),
    inputOf: (row) => ({ ...plainOf(row), headers: headersOrNull(row, masterKeys) }),
    merge,
    faultsOf: async (sql, input, { id, before }) => [
      ...(isMoved(before, input) ? urlFaults(input) : []),
      ...(await categoryFaults(sql, input.categories, (index) => `/categories/${index}`)),
      ...(before ? await modelFaults(sql, id, input) : []),
    ],
    valuesOf: ({ headers, ...input }, { id, scope: { vendor_id = '' }, before }) => ({
      name: input.name,
      base_url: input.base_url,
      protocol: input.protocol,
      categories: input.categories,
      timeouts: JSON.stringify(input.timeouts),
      allow_private: allowsPrivate(input),
      status: input.status,
      ...(headers || before === null
        ? sealHeaders(headers ?? {}, vendor_id, id, masterKeys)
        : sealedBefore(before)),
      ...(before === null && { vendor_id }),
    }),
    usersOf: async (sql, { id }) => {
      const { rows } = await sql.query<User>(
        "SELECT 'model' AS kind, model_id AS id, name FROM models WHERE endpoint_id = $1 LIMIT 100",
        [id],
      )
      return rows
    },
    guard: guardSettings('endpoint', ['base_url', 'allow_private']),
    removeWith: (sql, { id }) => forgetHealth(sql, 'endpoint', id),
  })
}

const plainOf = ({ name, base_url, protocol, categories, timeouts, allow_private, status }: Row) => ({
  name,
  base_url,
  protocol,
  categories,
  timeouts,
  allow_private,
  status,
})

const sealedBefore = ({ master_key, wrapped_key, sealed_headers }: Row): HeaderColumns => ({
  master_key,
  wrapped_key,
  sealed_headers,
})

const headersOrNull = (row: Row, keys: MasterKeys): Record<string, string> | null => {
  try {
    return openHeaders(row, keys)
  } catch (error) {
    if (error instanceof MasonError) return null
    throw error
  }
}

const merge = (before: Known, { headers, timeouts, ...change }: EndpointChange): Known => {
  const { allow_private: stored, ...kept } = before
  const moved = change.base_url !== undefined && hostOf(change.base_url) !== hostOf(before.base_url)
  return {
    ...kept,
    // a permission for one host is none for another
    ...(stored !== undefined && !moved && { allow_private: stored }),
    ...change,
    headers: headers ? withoutNull({ ...before.headers, ...headers }) : before.headers,
    timeouts: withoutNull({ ...before.timeouts, ...timeouts }),
  } as Known
}

const withoutNull = <Value>(map: Record<string, Value | null | undefined>): Record<string, Value> =>
  Object.fromEntries(Object.entries(map).filter((entry): entry is [string, Value] => entry[1] != null))

const hostOf = (url: string): string | null => (URL.canParse(url) ? new URL(url).host : null)

const allowsPrivate = ({ allow_private, base_url }: Pick<Known, 'allow_private' | 'base_url'>): boolean =>
  allow_private ?? plainlyPrivate(base_url)

/** What stands there already, such as the address of a setting, is not checked anew. */
const isMoved = (before: Row | null, input: Known): boolean =>
  before?.base_url !== input.base_url || before.allow_private !== allowsPrivate(input)

const urlFaults = (input: Known): Fault[] => {
  const fault = addressFaults(input.base_url, { allowPrivate: allowsPrivate(input) })
  if (fault) return [{ pointer: '/base_url', ...fault }]
  const { search, hash } = new URL(input.base_url)
  if (search === '' && hash === '' && !/[?#]/.test(input.base_url)) return []
  return [{ pointer: '/base_url', detail: 'has a query or a fragment; paths are added to its end' }]
}

type Served = Pick<ModelInput, 'name' | 'category'> & { definition: Pick<FormatInput, 'request'> | null }

/** What the models of this endpoint need of it. */
const modelFaults = async (sql: Sql, id: string, { categories, protocol }: Known): Promise<Fault[]> => {
  const { rows } = await sql.query<Served>(
    `SELECT m.name, m.category, f.definition FROM models m LEFT JOIN response_formats f ON f.format_id = m.response_format_id
     WHERE m.endpoint_id = $1 ORDER BY m.name`,
    [id],
  )
  const unserved = rows.find(({ category }) => categories.length > 0 && !categories.includes(category))
  const unasked = rows.find(({ definition }) => protocol === 'http' && definition?.request == null)
  return [
    ...(unserved
      ? [{ pointer: '/categories', detail: `model "${unserved.name}" is of category "${unserved.category}"` }]
      : []),
    ...(unasked
      ? [
          {
            pointer: '/protocol',
            detail: `model "${unasked.name}" has no response format with a request template, which http needs`,
          },
        ]
      : []),
  ]
}
