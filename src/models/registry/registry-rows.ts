import { queryOne } from '../../infra/database/database.ts'
import type { SealedText } from '../../infra/secrets/envelope.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { Scenario, ScenarioView } from '../../state/scenario.ts'
import type { CategoryView, EndpointView, KeyView, ModelView, VendorView } from '../schemas/catalog.ts'
import type { FormatInput, FormatView } from '../schemas/response-format.ts'
import type { GrantView, RouteView } from '../schemas/routing.ts'

/** The tables of the registry, all read in one snapshot. */

/** A row of a resource: an absent member of its view is null here. */
type RowOf<View, Column extends keyof View> = { [Name in Column]-?: Exclude<View[Name], undefined> }
/** `mark` changes with every change of the row. */
type Marked = { mark: string }
/** An encrypted secret; bytes as hexadecimal digits. */
export type SealedColumns = { master_key: string; wrapped_key: string; sealed: string }

/** A row of `vendors`. */
export type VendorRow = RowOf<VendorView, 'id' | 'name' | 'status'>
/** A row of `vendor_keys`. */
export type KeyRow = Marked &
  SealedColumns &
  RowOf<KeyView, 'id' | 'vendor_id' | 'label' | 'limits' | 'status'>
/** A row of `endpoints`. */
export type EndpointRow = Marked & { [Column in keyof SealedColumns]: string | null } & RowOf<
    EndpointView,
    Exclude<keyof EndpointView, 'headers' | 'health' | 'created_at' | 'updated_at' | 'truncated'>
  >
/** A row of `models`. */
export type ModelRow = RowOf<
  ModelView,
  Exclude<keyof ModelView, 'version' | 'health' | 'created_at' | 'updated_at' | 'truncated'>
>
/** A row of `response_formats`. */
export type FormatRow = Marked &
  Omit<FormatView, keyof FormatInput> &
  Pick<FormatInput, 'name' | 'category'> & { definition: Omit<FormatInput, 'name' | 'category'> }
/** The parts of a format that may be absent. */
export const absentFormatParts = { request: null, stream: null, poll: null, schema: null, samples: [] }
/** The fields of a stored format as the body of a request. */
export const toFormatFields = ({
  name,
  category,
  definition,
}: Pick<FormatRow, 'name' | 'category' | 'definition'>) => ({
  name,
  category,
  ...absentFormatParts,
  ...definition,
})
type CategoryRow = RowOf<CategoryView, 'name' | 'built_in'>
type RouteRow = RowOf<RouteView, 'role' | 'category' | 'models' | 'strategy'>
type GrantRow = RowOf<GrantView, 'key_id' | 'business_id' | 'user_id'>
/** A row of `scenarios`. */
export type ScenarioRow = Scenario & Pick<ScenarioView, 'status'>

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
    response_format_id, capabilities, refuses_stop, continuation, status`,
    'models',
    'model_id',
  )} AS models,
  ${list('format_id AS id, name, category, definition, built_in, created_at, updated_at, xmin::text AS mark', 'response_formats', 'format_id')} AS formats,
  ${list('name, built_in', 'categories', 'category_id')} AS categories,
  ${list('role, category, models, strategy', 'routes', 'route_id')} AS routes,
  ${list('key_id, business_id, user_id', 'grants', 'grant_id')} AS grants,
  ${list('name, description, examples, prompts, tools, output_tool, limits, models, rules, status', 'scenarios', 'scenario_id')} AS scenarios`

/** With bytes, as the envelope needs it. */
export const toSealed = ({ master_key, wrapped_key, sealed }: SealedColumns): SealedText => ({
  master_key,
  wrapped_key: Buffer.from(wrapped_key, 'hex'),
  sealed: Buffer.from(sealed, 'hex'),
})

/** The lock of every change. */
export const registryLock = 'mason.registry'

/** Reads all rows in one statement. */
export const readRegistryRows = async (sql: Sql): Promise<RegistryRows> =>
  (await queryOne<RegistryRows>(sql, statement, [])) as RegistryRows

/** The version that every change of the registry increments. */
export const readRegistryVersion = async (sql: Sql): Promise<number> =>
  Number((await queryOne<{ version: number }>(sql, 'SELECT version FROM registry_version', []))?.version)
