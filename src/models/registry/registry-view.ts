import type { Config } from '../../infra/config/config.ts'
import { groupBy } from '../../infra/lib/group-by.ts'
import { toMicro } from '../../infra/lib/money.ts'
import { openSealedText, type SealBinding } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { listHeaderSecrets } from '../../infra/secrets/redaction.ts'
import { Secret } from '../../infra/secrets/secret.ts'
import { toErrorMessage } from '../../state/errors.ts'
import type {
  EndpointEntry,
  KeyEntry,
  MicroPrices,
  ModelEntry,
  RegistryView,
  RouteEntry,
  VendorEntry,
} from '../ports/model-ports.ts'
import type { KeyLimits, Prices } from '../schemas/catalog.ts'
import type { FormatView } from '../schemas/response-format.ts'
import {
  type EndpointRow,
  type FormatRow,
  type KeyRow,
  type RegistryRows,
  type SealedColumns,
  toFormatFields,
  toSealed,
} from './registry-rows.ts'
import { applySettings, type BuiltInModel, settingsKeyId } from './settings-entries.ts'

/** What views need beside the rows. */
export type RegistryViewOptions = {
  masterKeys: MasterKeys
  openai: Config['openai']
  /** Used when `openai` is null. */
  builtIn?: BuiltInModel | undefined
  /** Receives every opened secret, so that logs can redact it. */
  onSecret(secret: string): void
}

const toMicroPrices = ({ input, output, cached_input, currency }: Prices): MicroPrices => ({
  input: toMicro(input),
  output: toMicro(output),
  cached_input: toMicro(cached_input ?? input),
  currency,
})

/** The limits of a key as its entry has them: `monthly_cost` in millionths. */
export const toMicroLimits = ({ rpm = null, tpm = null, daily_tokens = null, monthly_cost }: KeyLimits) => ({
  rpm,
  tpm,
  daily_tokens,
  monthly_cost: monthly_cost == null ? null : toMicro(monthly_cost),
})

const toFormatView = ({ mark: _, definition, ...row }: FormatRow): FormatView => ({
  ...row,
  ...toFormatFields({ ...row, definition }),
  created_at: new Date(row.created_at).toISOString(),
  updated_at: new Date(row.updated_at).toISOString(),
})

/** Caches the entry made from a row until the row changes. */
const createRowCache = <Row extends { id: string; mark: string }, Entry>(make: (row: Row) => Entry) => {
  let cache = new Map<string, { mark: string; entry: Entry }>()
  return (rows: readonly Row[]): Map<string, Entry> => {
    const next = new Map<string, { mark: string; entry: Entry }>()
    for (const row of rows) {
      const before = cache.get(row.id)
      next.set(row.id, before?.mark === row.mark ? before : { mark: row.mark, entry: make(row) })
    }
    cache = next
    return new Map([...next].map(([id, { entry }]) => [id, entry]))
  }
}

type OpenedSecret = { text: string | null; error: string | null }

/**
 * Makes views of the registry, each from all rows. Unchanged rows give the same objects again: secrets are opened once,
 * and formats and endpoints can be keys of caches.
 */
export const createRegistryViewBuilder = ({ masterKeys, openai, builtIn, onSecret }: RegistryViewOptions) => {
  const unseal = (row: SealedColumns, binding: SealBinding): OpenedSecret => {
    try {
      return { text: openSealedText(toSealed(row), binding, masterKeys).reveal(), error: null }
    } catch (error) {
      return { text: null, error: toErrorMessage(error) }
    }
  }

  const readSecret = (row: KeyRow): Pick<KeyEntry, 'secret' | 'error'> => {
    const { text, error } =
      row.id === settingsKeyId
        ? { text: openai?.apiKey ?? null, error: null }
        : unseal(row, { purpose: 'secret', vendor_id: row.vendor_id, row_id: row.id })
    if (text !== null) onSecret(text)
    return { secret: text === null ? null : new Secret(text), error }
  }

  const readHeaders = (row: EndpointRow): { headers: Record<string, string>; error: string | null } => {
    const { master_key, wrapped_key, sealed, vendor_id, id } = row
    if (master_key === null || wrapped_key === null || sealed === null) return { headers: {}, error: null }
    const { text, error } = unseal(
      { master_key, wrapped_key, sealed },
      { purpose: 'headers', vendor_id, row_id: id },
    )
    const headers = text === null ? {} : (JSON.parse(text) as Record<string, string>)
    for (const secret of listHeaderSecrets(headers)) onSecret(secret)
    return { headers, error }
  }

  const toEndpointEntry = (row: EndpointRow): EndpointEntry => {
    const { status, timeouts, mark: _, master_key: __, wrapped_key: ___, sealed: ____, ...fields } = row
    return {
      ...fields,
      active: status === 'active',
      ...readHeaders(row),
      timeouts: {
        firstByteMs: timeouts.first_byte_ms ?? 60_000,
        idleMs: timeouts.idle_ms ?? 60_000,
        totalMs: timeouts.total_ms ?? 600_000,
      },
    }
  }

  const secrets = createRowCache(readSecret)
  const endpointsFrom = createRowCache(toEndpointEntry)
  const formatsFrom = createRowCache(toFormatView)

  return (stored: RegistryRows): RegistryView => {
    const rows = applySettings(stored, openai, builtIn)
    const vendors = new Map(
      rows.vendors.map(({ status, ...row }) => [row.id, { active: status === 'active', ...row }]),
    )
    const endpoints = endpointsFrom(rows.endpoints)
    const formats = formatsFrom(rows.formats)
    return {
      version: Number(rows.version),
      models: toModelEntries(rows, vendors, endpoints, formats),
      ...toRouteEntries(rows),
      keysByVendor: toKeysByVendor(rows, secrets(rows.keys)),
      scenarios: toScenarios(rows),
    }
  }
}

/** Their answers come whole, after all of the work: no byte before the end says nothing. */
const slowCategories = new Set([
  'text-to-image',
  'image-edit',
  'text-to-video',
  'text-to-speech',
  'speech-to-text',
])

/** By alias, the oldest first. */
const toModelEntries = (
  { models, endpoints: endpointRows }: RegistryRows,
  vendors: ReadonlyMap<string, VendorEntry>,
  endpoints: ReadonlyMap<string, EndpointEntry>,
  formats: ReadonlyMap<string, FormatView>,
): Map<string, ModelEntry> => {
  const entries = new Map<string, ModelEntry>()
  const timed = new Set(
    endpointRows.flatMap(({ id, timeouts }) => (timeouts.first_byte_ms === undefined ? [] : [id])),
  )
  for (const { vendor_id, endpoint_id, response_format_id, prices, status, ...row } of models) {
    const vendor = vendors.get(vendor_id)
    const endpoint = endpoints.get(endpoint_id)
    if (!vendor || !endpoint) continue
    // V8 of Node 20 gives an object whose members come after a spread a shape of its own: 15 times the time
    entries.set(row.name, {
      vendor,
      endpoint: slowCategories.has(row.category) && !timed.has(endpoint_id) ? toSlow(endpoint) : endpoint,
      prices: prices && toMicroPrices(prices),
      format: formats.get(response_format_id ?? '') ?? null,
      active: status === 'active',
      ...row,
    })
  }
  return entries
}

const toSlow = (endpoint: EndpointEntry): EndpointEntry => ({
  ...endpoint,
  timeouts: { ...endpoint.timeouts, firstByteMs: endpoint.timeouts.totalMs },
})

const toRouteEntries = ({
  routes,
}: RegistryRows): Pick<RegistryView, 'routesByRole' | 'routesByCategory'> => {
  const routesByRole = new Map<string, RouteEntry>()
  const routesByCategory = new Map<string, RouteEntry>()
  for (const { role, category, models, strategy } of routes) {
    const entry = { models: models.map(({ model, weight = 1 }) => ({ model, weight })), strategy }
    if (role !== null) routesByRole.set(role, entry)
    else if (category !== null) routesByCategory.set(category, entry)
  }
  return { routesByRole, routesByCategory }
}

const toScenarios = ({ scenarios }: RegistryRows): RegistryView['scenarios'] =>
  new Map(
    scenarios
      .filter(({ status }) => status === 'active')
      .map(({ status: _, ...scenario }) => [scenario.name, scenario]),
  )

const toKeysByVendor = (
  { keys, grants }: RegistryRows,
  secrets: ReadonlyMap<string, Pick<KeyEntry, 'secret' | 'error'>>,
): Map<string, KeyEntry[]> => {
  const grantsByKey = groupBy(grants, ({ key_id }) => key_id)
  const entries = keys.map(
    ({ id, vendor_id, label, status, limits }): KeyEntry => ({
      id,
      vendor_id,
      label,
      active: status === 'active',
      limits: toMicroLimits(limits),
      grants: (grantsByKey.get(id) ?? []).map(({ business_id, user_id }) => ({ business_id, user_id })),
      ...(secrets.get(id) ?? { secret: null, error: 'it was not opened' }),
    }),
  )
  return groupBy(entries, ({ vendor_id }) => vendor_id)
}
