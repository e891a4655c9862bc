import type { Config } from '../config.ts'
import { offlineModelId, settingsEmbeddingModelId, settingsModelId } from '../models/choose/lines.ts'
import { offlineModel } from '../models/offline/name.ts'
import type { EndpointRow, KeyRow, ModelRow, RegistryRows, VendorRow } from './rows.ts'

/**
 * What the OPENAI_* settings add to the registry. In memory each process goes by its own settings, whatever another one
 * wrote down of its own; the rows let admins see it, and set limits, grants, prices and the like, which are kept.
 */

export const settingsVendorId = 'ven_settings'
export const settingsKeyId = 'key_settings'
export const settingsEndpointId = 'end_settings'
export const settingsModelIds: readonly string[] = [settingsModelId, settingsEmbeddingModelId]

/** No such host: the built-in model answers in this process. */
export const offlineBaseUrl = 'http://offline.invalid/v1'

const openaiBaseUrl = 'https://api.openai.com/v1'

const firstFree = (wanted: readonly string[], taken: ReadonlySet<string>): string =>
  wanted.find((name) => !taken.has(name)) ?? (wanted.at(-1) as string)

/** What stands in the setting, as an alias may be written. */
const aliasOf = (name: string): string =>
  name
    .replace(/[^\w.:/@+-]+/g, '-')
    .replace(/^\W+/, '')
    .slice(0, 150) || 'model'

/** The columns that follow the settings; all others are the admin's. */
export type SettingsColumns = {
  vendor: Pick<VendorRow, 'id' | 'name' | 'status'>
  /** Null: no key is set, the server asks for none. */
  key: Pick<KeyRow, 'id' | 'label' | 'status'> | null
  endpoint: Pick<EndpointRow, 'id' | 'name' | 'base_url' | 'protocol' | 'allow_private' | 'status'>
  models: Pick<ModelRow, 'id' | 'name' | 'upstream_name' | 'category' | 'endpoint_id' | 'status'>[]
}

/** An alias or name that an admin gave to something of his own stays his. */
export const columnsOf = (openai: NonNullable<Config['openai']>, rows: RegistryRows): SettingsColumns => {
  const vendors = new Set(rows.vendors.filter(({ id }) => id !== settingsVendorId).map(({ name }) => name))
  const aliases = new Set(
    rows.models.filter(({ id }) => !settingsModelIds.includes(id)).map(({ name }) => name),
  )
  const modelOf = (id: string, upstream_name: string, category: string) => {
    const alias = aliasOf(upstream_name)
    const name = firstFree([alias, `settings/${alias}`, id], aliases)
    aliases.add(name)
    return { id, name, upstream_name, category, endpoint_id: settingsEndpointId, status: 'active' as const }
  }
  return {
    vendor: {
      id: settingsVendorId,
      name: firstFree(['settings', settingsVendorId], vendors),
      status: 'active',
    },
    key: openai.apiKey === null ? null : { id: settingsKeyId, label: 'OPENAI_API_KEY', status: 'active' },
    endpoint: {
      id: settingsEndpointId,
      name: 'settings',
      base_url: openai.baseUrl ?? openaiBaseUrl,
      protocol: 'openai',
      // what stands in the settings is the operator's own word
      allow_private: openai.baseUrl !== null,
      status: 'active',
    },
    models: [
      modelOf(settingsModelId, openai.model, 'text'),
      modelOf(settingsEmbeddingModelId, openai.embeddingModel, 'embedding'),
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
  context_window: null,
  max_output: null,
  prices: null,
  response_format_id: null,
  capabilities: [],
}

/** In its place, or at the end. What is new gives way to what is stored, and that to what the settings say. */
const put = <Row extends { id: string }, Own extends { id: string }>(
  rows: readonly Row[],
  fresh: Omit<Row, keyof Own>,
  own: Own,
): Row[] => {
  const row = { ...fresh, ...rows.find(({ id }) => id === own.id), ...own } as unknown as Row
  return rows.some(({ id }) => id === own.id)
    ? rows.map((one) => (one.id === own.id ? row : one))
    : [...rows, row]
}

/** The rows as this process sees them: with the models of its settings, or without any the offline model. */
export const withSettings = (rows: RegistryRows, openai: Config['openai']): RegistryRows => {
  if (!openai) return withOffline(withoutSettings(rows))
  const { vendor, key, endpoint, models } = columnsOf(openai, rows)
  const vendor_id = settingsVendorId
  return {
    ...rows,
    vendors: put(rows.vendors, {}, vendor),
    // its secret comes from the settings, so the row may be missing or unreadable
    keys: key
      ? put(rows.keys, { ...newKey, vendor_id }, key)
      : rows.keys.filter(({ id }) => id !== settingsKeyId),
    endpoints: put(rows.endpoints, { ...newEndpoint, vendor_id }, endpoint),
    models: models.reduce((list, model) => put(list, { ...newModel, vendor_id }, model), rows.models),
  }
}

/** What an admin added to the vendor of the settings stays, out of use. */
const withoutSettings = (rows: RegistryRows): RegistryRows => ({
  ...rows,
  vendors: rows.vendors.map((row) => (row.id === settingsVendorId ? { ...row, status: 'disabled' } : row)),
  keys: rows.keys.filter(({ id }) => id !== settingsKeyId),
  models: rows.models.filter(({ id }) => !settingsModelIds.includes(id)),
})

const withOffline = (rows: RegistryRows): RegistryRows => {
  const [vendor_id, endpoint_id] = ['ven_offline', 'end_offline']
  const aliases = new Set(rows.models.map(({ name }) => name))
  const name = firstFree([offlineModel, `offline/${offlineModel}`], aliases)
  return {
    ...rows,
    vendors: [...rows.vendors, { id: vendor_id, name: 'offline', status: 'active' }],
    endpoints: put(
      rows.endpoints,
      { ...newEndpoint, vendor_id },
      {
        id: endpoint_id,
        name: 'offline',
        base_url: offlineBaseUrl,
        protocol: 'openai',
        allow_private: false,
        status: 'active',
      },
    ),
    models: put(
      rows.models,
      // it reads all it is given in no time
      { ...newModel, vendor_id, endpoint_id, context_window: 4_000_000 },
      { id: offlineModelId, name, upstream_name: offlineModel, category: 'text', status: 'active' },
    ),
  }
}
