import type { SealedText } from '../../infra/secrets/envelope.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { Scenario } from '../../state/scenario.ts'
import type { KeyLimits, Prices } from '../schemas/catalog.ts'
import type { FormatInput, FormatView } from '../schemas/response-format.ts'
import type { RoutingStrategy } from '../schemas/routing.ts'

/** The tables of the registry, all read in one snapshot. */

type Status = 'active' | 'disabled'
/** `mark` changes with every change of the row. */
type Marked = { mark: string }
/** An encrypted secret; bytes as hexadecimal digits. */
export type SealedColumns = { master_key: string; wrapped_key: string; sealed: string }

/** A row of `vendors`. */
export type VendorRow = { id: string; name: string; status: Status }
/** A row of `vendor_keys`. */
export type KeyRow = Marked &
  SealedColumns & {
    id: string
    vendor_id: string
    label: string
    limits: KeyLimits
    status: Status
  }
/** A row of `endpoints`. */
export type EndpointRow = Marked & { [Column in keyof SealedColumns]: string | null } & {
  id: string
  vendor_id: string
  name: string
  base_url: string
  protocol: 'openai' | 'http'
  categories: string[]
  timeouts: { first_byte_ms?: number; idle_ms?: number; total_ms?: number }
  allow_private: boolean
  status: Status
}
/** A row of `models`. */
export type ModelRow = {
  id: string
  vendor_id: string
  endpoint_id: string
  name: string
  upstream_name: string
  category: string
  dialect: 'tools' | 'xml'
  context_window: number | null
  max_output: number | null
  prices: Prices | null
  response_format_id: string | null
  capabilities: string[]
  status: Status
}
/** A row of `response_formats`. */
export type FormatRow = Marked & {
  id: string
  name: string
  category: string
  definition: Omit<FormatInput, 'name' | 'category'>
  built_in: boolean
  status: FormatView['status']
  faults: FormatView['faults']
  created_at: string
  updated_at: string
}
/** The fields of a stored format as the body of a request. */
export const toFormatFields = ({
  name,
  category,
  definition,
}: Pick<FormatRow, 'name' | 'category' | 'definition'>) => {
  const absent = {
    request: null,
    paths: definition.paths,
    stream: null,
    poll: null,
    schema: null,
    samples: [],
  }
  return { name, category, ...absent, ...definition }
}
type CategoryRow = { name: string; built_in: boolean }
type RouteRow = {
  role: string | null
  category: string | null
  models: { model: string; weight?: number }[]
  strategy: RoutingStrategy
}
/** A row of `scenarios`. */
export type ScenarioRow = Scenario & { status: Status }
type GrantRow = { key_id: string; business_id: string | null; user_id: string | null }

/** All rows, the oldest first. */
export type RegistryRows = {
  version: number
  vendors: VendorRow[]
  keys: KeyRow[]
  endpoints: EndpointRow[]
  models: ModelRow[]
  formats: FormatRow[]
  categories: CategoryRow[]
  routes: RouteRow[]
  grants: GrantRow[]
  scenarios: ScenarioRow[]
}

const sealedColumns = (sealed: string): string =>
  `master_key, encode(wrapped_key, 'hex') AS wrapped_key, encode(${sealed}, 'hex') AS sealed`

/** The oldest first. One statement reads one snapshot, with its version. */
const list = (columns: string, table: string, id: string): string =>
  `(SELECT coalesce(json_agg(r), '[]') FROM (SELECT ${columns} FROM ${table} ORDER BY created_at, ${id}) r)`

const statement = `SELECT (SELECT version FROM registry_version) AS version,
  ${list('vendor_id AS id, name, status', 'vendors', 'vendor_id')} AS vendors,
  ${list(`key_id AS id, vendor_id, label, ${sealedColumns('sealed_secret')}, limits, status, xmin::text AS mark`, 'vendor_keys', 'key_id')} AS keys,
  ${list(
    `endpoint_id AS id, vendor_id, name, base_url, protocol, categories, ${sealedColumns('sealed_headers')}, timeouts, allow_private, status, xmin::text AS mark`,
    'endpoints',
    'endpoint_id',
  )} AS endpoints,
  ${list(
    `model_id AS id, vendor_id, endpoint_id, name, upstream_name, category, dialect, context_window, max_output, prices,
    response_format_id, capabilities, status`,
    'models',
    'model_id',
  )} AS models,
  ${list('format_id AS id, name, category, definition, built_in, status, faults, created_at, updated_at, xmin::text AS mark', 'response_formats', 'format_id')} AS formats,
  ${list('name, built_in', 'categories', 'category_id')} AS categories,
  ${list('role, category, models, strategy', 'routes', 'route_id')} AS routes,
  ${list('key_id, business_id, user_id', 'grants', 'grant_id')} AS grants,
  ${list('name, description, prompts, tools, output_tool, limits, models, rules, status', 'scenarios', 'scenario_id')} AS scenarios`

/** With bytes, as the envelope needs it. */
export const toSealed = ({ master_key, wrapped_key, sealed }: SealedColumns): SealedText => ({
  master_key,
  wrapped_key: Buffer.from(wrapped_key, 'hex'),
  sealed: Buffer.from(sealed, 'hex'),
})

/** Reads all rows in one statement. */
export const readRegistryRows = async (sql: Sql): Promise<RegistryRows> => {
  const { rows } = await sql.query<RegistryRows>(statement)
  return rows[0] as RegistryRows
}

/** The version that every change of the registry increments. */
export const readRegistryVersion = async (sql: Sql): Promise<number> => {
  const { rows } = await sql.query<{ version: number }>('SELECT version FROM registry_version')
  return Number(rows[0]?.version)
}
