import type { Config } from '../../infra/config/config.ts'
import { settingsEmbeddingModelId, settingsModelId, settingsModelIds } from '../routing/candidate-order.ts'
import type { EndpointRow, KeyRow, ModelRow, RegistryRows, VendorRow } from './registry-rows.ts'

/**
 * The rows that the OPENAI_* settings add to the registry. In memory each process uses its own settings, whatever
 * another process wrote. The rows let admins see them, and set limits, grants, prices and the like, which stay.
 */

/** The vendor of the settings. */
export const settingsVendorId = 'ven_settings'
/** The key in OPENAI_API_KEY. */
export const settingsKeyId = 'key_settings'
/** The endpoint at OPENAI_BASE_URL. */
export const settingsEndpointId = 'end_settings'

/** A model that this process provides when the settings name none. */
export type BuiltInModel = Pick<ModelRow, 'name' | 'capabilities' | 'context_window' | 'dialect'> & {
  vendor: string
  base_url: string
}

const openaiBaseUrl = 'https://api.openai.com/v1'

const findFreeName = (candidates: readonly string[], taken: ReadonlySet<string>): string =>
  candidates.find((name) => !taken.has(name)) ?? (candidates.at(-1) as string)

/** The value of the setting as a valid alias. */
const toAlias = (name: string): string =>
  name
    .replace(/[^\w.:/@+-]+/g, '-')
    .replace(/^\W+/, '')
    .slice(0, 150) || 'model'

/** The columns that follow the settings; admins own all others. */
export type SettingsColumns = {
  vendor: Pick<VendorRow, 'id' | 'name' | 'status'>
  /** Null: no key is set, the server needs none. */
  key: Pick<KeyRow, 'id' | 'label' | 'status'> | null
  endpoint: Pick<EndpointRow, 'id' | 'name' | 'base_url' | 'protocol' | 'allow_private' | 'status'>
  models: Pick<ModelRow, 'id' | 'name' | 'upstream_name' | 'category' | 'endpoint_id' | 'status'>[]
}

/** The columns of the settings. An alias or name that an admin used for another row stays with that row. */
export const toSettingsColumns = (
  openai: NonNullable<Config['openai']>,
  rows: RegistryRows,
): SettingsColumns => {
  const vendors = new Set(rows.vendors.filter(({ id }) => id !== settingsVendorId).map(({ name }) => name))
  const aliases = new Set(
    rows.models.filter(({ id }) => !settingsModelIds.includes(id)).map(({ name }) => name),
  )
  const toModel = (id: string, upstream_name: string, category: string) => {
    const alias = toAlias(upstream_name)
    const name = findFreeName([alias, `settings/${alias}`, id], aliases)
    aliases.add(name)
    return { id, name, upstream_name, category, endpoint_id: settingsEndpointId, status: 'active' as const }
  }
  return {
    vendor: {
      id: settingsVendorId,
      name: findFreeName(['settings', settingsVendorId], vendors),
      status: 'active',
    },
    key: openai.apiKey === null ? null : { id: settingsKeyId, label: 'OPENAI_API_KEY', status: 'active' },
    endpoint: {
      id: settingsEndpointId,
      name: 'settings',
      base_url: openai.baseUrl ?? openaiBaseUrl,
      protocol: 'openai',
      // the operator chose this URL
      allow_private: openai.baseUrl !== null,
      status: 'active',
    },
    models: [
      toModel(settingsModelId, openai.model, 'text'),
      toModel(settingsEmbeddingModelId, openai.embeddingModel, 'embedding'),
    ],
  }
}

const newKey = { limits: {}, master_key: '', wrapped_key: '', sealed: '', mark: '' }

const newEndpoint = {
  categories: [],
  master_key: null,
  wrapped_key: null,
  sealed: null,
  timeouts: {},
  mark: '',
}

const newModel = {
  dialect: 'tools' as const,
  refuses_stop: false,
  continuation: 'none' as const,
  context_window: null,
  max_output: null,
  prices: null,
  response_format_id: null,
  capabilities: [],
}

/** Replaces the row, or adds it at the end. Stored columns override defaults, settings override stored columns. */
const putRow = <Row extends { id: string }, Own extends { id: string }>(
  rows: readonly Row[],
  defaults: Omit<Row, keyof Own>,
  own: Own,
): Row[] => {
  const row = { ...defaults, ...rows.find(({ id }) => id === own.id), ...own } as unknown as Row
  return rows.some(({ id }) => id === own.id)
    ? rows.map((one) => (one.id === own.id ? row : one))
    : [...rows, row]
}

/** The rows as this process uses them: with the models of its settings, or else with the built-in one. */
export const applySettings = (
  rows: RegistryRows,
  openai: Config['openai'],
  builtIn?: BuiltInModel,
): RegistryRows => {
  if (!openai) return builtIn ? withBuiltIn(removeSettings(rows), builtIn) : removeSettings(rows)
  const { vendor, key, endpoint, models } = toSettingsColumns(openai, rows)
  const vendor_id = settingsVendorId
  return {
    ...rows,
    vendors: putRow(rows.vendors, {}, vendor),
    // its secret comes from the settings, so the row may be missing or unreadable
    keys: key
      ? putRow(rows.keys, { ...newKey, vendor_id }, key)
      : rows.keys.filter(({ id }) => id !== settingsKeyId),
    endpoints: putRow(rows.endpoints, { ...newEndpoint, vendor_id }, endpoint),
    models: models.reduce((list, model) => putRow(list, { ...newModel, vendor_id }, model), rows.models),
  }
}

/** Rows that an admin added to the vendor of the settings stay, disabled with their vendor. */
const removeSettings = (rows: RegistryRows): RegistryRows => ({
  ...rows,
  vendors: rows.vendors.map((row) => (row.id === settingsVendorId ? { ...row, status: 'disabled' } : row)),
  keys: rows.keys.filter(({ id }) => id !== settingsKeyId),
  models: rows.models.filter(({ id }) => !settingsModelIds.includes(id)),
})

const withBuiltIn = (rows: RegistryRows, { vendor, base_url, ...model }: BuiltInModel): RegistryRows => {
  const [vendor_id, endpoint_id] = [`ven_${vendor}`, `end_${vendor}`]
  const aliases = new Set(rows.models.map(({ name }) => name))
  const name = findFreeName([model.name, `${vendor}/${model.name}`], aliases)
  const status = 'active'
  return {
    ...rows,
    vendors: [...rows.vendors, { id: vendor_id, name: vendor, status }],
    endpoints: putRow(
      rows.endpoints,
      { ...newEndpoint, vendor_id },
      { id: endpoint_id, name: vendor, base_url, protocol: 'openai', allow_private: false, status },
    ),
    models: putRow(
      rows.models,
      { ...newModel, vendor_id, endpoint_id },
      { ...model, id: `mod_${vendor}`, name, upstream_name: model.name, category: 'text', status },
    ),
  }
}
