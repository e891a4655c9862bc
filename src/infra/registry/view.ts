import type { Prices } from '../../state/registry/catalog.ts'
import type { FormatView } from '../../state/registry/response-format.ts'
import type { Config } from '../config.ts'
import type {
  EndpointEntry,
  KeyEntry,
  MicroPrices,
  ModelEntry,
  RegistryView,
  RouteEntry,
  VendorEntry,
} from '../models/ports.ts'
import { open, type SealedPlace } from '../secrets/envelope.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { secretsInHeaders } from '../secrets/redaction.ts'
import { Secret } from '../secrets/secret.ts'
import {
  type EndpointRow,
  type FormatRow,
  type KeyRow,
  type RegistryRows,
  type SealedColumns,
  sealedOf,
} from './rows.ts'
import { settingsKeyId, withSettings } from './settings-entries.ts'

export type ViewOptions = {
  masterKeys: MasterKeys
  openai: Config['openai']
  /** Is told every secret that is opened, so that it can be kept out of what is written. */
  onSecret(secret: string): void
}

const clocks = { firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 }

const micro = (amount: number): number => Math.round(amount * 1_000_000)

const microPrices = ({ input, output, cached_input, currency }: Prices): MicroPrices => ({
  input: micro(input),
  output: micro(output),
  cached_input: micro(cached_input ?? input),
  currency,
})

const formatOf = (row: FormatRow): FormatView => {
  const { id, name, category, definition, built_in, status, faults } = row
  return {
    id,
    name,
    category,
    request: definition.request ?? null,
    paths: definition.paths,
    stream: definition.stream ?? null,
    poll: definition.poll ?? null,
    schema: definition.schema ?? null,
    samples: definition.samples ?? [],
    built_in,
    status,
    faults,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
  }
}

/** What a row came to, kept as long as the row stays as it is. */
const createMemory = <Row extends { id: string; mark: string }, Entry>(make: (row: Row) => Entry) => {
  let known = new Map<string, { mark: string; entry: Entry }>()
  return (rows: readonly Row[]): Map<string, Entry> => {
    const kept = new Map<string, { mark: string; entry: Entry }>()
    for (const row of rows) {
      const before = known.get(row.id)
      kept.set(row.id, before?.mark === row.mark ? before : { mark: row.mark, entry: make(row) })
    }
    known = kept
    return new Map([...kept].map(([id, { entry }]) => [id, entry]))
  }
}

type Opened = { text: string | null; fault: string | null }

/**
 * Makes views of the registry, each from all rows. What did not change since the last one is the same object again:
 * secrets are opened once, and formats and endpoints may be used as keys of what is worked out from them.
 */
export const createViewMaker = ({ masterKeys, openai, onSecret }: ViewOptions) => {
  const unseal = (row: SealedColumns, place: SealedPlace): Opened => {
    try {
      return { text: open(sealedOf(row), place, masterKeys).reveal(), fault: null }
    } catch (error) {
      return { text: null, fault: error instanceof Error ? error.message : String(error) }
    }
  }

  const secretOf = (row: KeyRow): Pick<KeyEntry, 'secret' | 'fault'> => {
    const { text, fault } =
      row.id === settingsKeyId
        ? { text: openai?.apiKey ?? null, fault: null }
        : unseal(row, { purpose: 'secret', vendor_id: row.vendor_id, row_id: row.id })
    if (text !== null) onSecret(text)
    return { secret: text === null ? null : new Secret(text), fault }
  }

  const headersOf = (row: EndpointRow): { headers: Record<string, string>; fault: string | null } => {
    const { master_key, wrapped_key, sealed, vendor_id, id } = row
    if (master_key === null || wrapped_key === null || sealed === null) return { headers: {}, fault: null }
    const { text, fault } = unseal(
      { master_key, wrapped_key, sealed },
      { purpose: 'headers', vendor_id, row_id: id },
    )
    const headers = text === null ? {} : (JSON.parse(text) as Record<string, string>)
    for (const secret of secretsInHeaders(headers)) onSecret(secret)
    return { headers, fault }
  }

  const endpointOf = (row: EndpointRow): EndpointEntry => ({
    id: row.id,
    vendor_id: row.vendor_id,
    name: row.name,
    active: row.status === 'active',
    base_url: row.base_url,
    protocol: row.protocol,
    categories: row.categories,
    ...headersOf(row),
    timeouts: {
      firstByteMs: row.timeouts.first_byte_ms ?? clocks.firstByteMs,
      idleMs: row.timeouts.idle_ms ?? clocks.idleMs,
      totalMs: row.timeouts.total_ms ?? clocks.totalMs,
    },
    allow_private: row.allow_private,
  })

  const secrets = createMemory(secretOf)
  const endpointsFrom = createMemory(endpointOf)
  const formatsFrom = createMemory(formatOf)

  return (stored: RegistryRows): RegistryView => {
    const rows = withSettings(stored, openai)
    const vendors = new Map(rows.vendors.map((row): [string, VendorEntry] => [row.id, vendorOf(row)]))
    const endpoints = endpointsFrom(rows.endpoints)
    const formats = formatsFrom(rows.formats)
    return {
      version: Number(rows.version),
      models: modelsOf(rows, vendors, endpoints, formats),
      ...routesOf(rows),
      keysByVendor: keysOf(rows, secrets(rows.keys)),
      scenarios: scenariosOf(rows),
    }
  }
}

const vendorOf = ({ id, name, status }: RegistryRows['vendors'][0]): VendorEntry => ({
  id,
  name,
  active: status === 'active',
})

/** By alias, the oldest first. */
const modelsOf = (
  { models }: RegistryRows,
  vendors: ReadonlyMap<string, VendorEntry>,
  endpoints: ReadonlyMap<string, EndpointEntry>,
  formats: ReadonlyMap<string, FormatView>,
): Map<string, ModelEntry> => {
  const entries = new Map<string, ModelEntry>()
  for (const row of models) {
    const vendor = vendors.get(row.vendor_id)
    const endpoint = endpoints.get(row.endpoint_id)
    if (!vendor || !endpoint) continue
    entries.set(row.name, {
      id: row.id,
      name: row.name,
      vendor,
      endpoint,
      upstream_name: row.upstream_name,
      category: row.category,
      dialect: row.dialect,
      context_window: row.context_window,
      max_output: row.max_output,
      prices: row.prices && microPrices(row.prices),
      format: row.response_format_id === null ? null : (formats.get(row.response_format_id) ?? null),
      capabilities: row.capabilities,
      active: row.status === 'active',
    })
  }
  return entries
}

const routesOf = ({ routes }: RegistryRows): Pick<RegistryView, 'routesByRole' | 'routesByCategory'> => {
  const routesByRole = new Map<string, RouteEntry>()
  const routesByCategory = new Map<string, RouteEntry>()
  for (const { role, category, models, strategy } of routes) {
    const entry = { models: models.map(({ model, weight = 1 }) => ({ model, weight })), strategy }
    if (role !== null) routesByRole.set(role, entry)
    else if (category !== null) routesByCategory.set(category, entry)
  }
  return { routesByRole, routesByCategory }
}

const scenariosOf = ({ scenarios }: RegistryRows): RegistryView['scenarios'] =>
  new Map(
    scenarios
      .filter(({ status }) => status === 'active')
      .map(({ status: _, ...scenario }) => [scenario.name, scenario]),
  )

const keysOf = (
  { keys, grants }: RegistryRows,
  secrets: ReadonlyMap<string, Pick<KeyEntry, 'secret' | 'fault'>>,
): Map<string, KeyEntry[]> => {
  const grantsByKey = groupBy(grants, ({ key_id }) => key_id)
  const entries = keys.map(
    (row): KeyEntry => ({
      id: row.id,
      vendor_id: row.vendor_id,
      label: row.label,
      active: row.status === 'active',
      limits: {
        rpm: row.limits.rpm ?? null,
        tpm: row.limits.tpm ?? null,
        daily_tokens: row.limits.daily_tokens ?? null,
        monthly_cost: row.limits.monthly_cost == null ? null : micro(row.limits.monthly_cost),
      },
      grants: (grantsByKey.get(row.id) ?? []).map(({ business_id, user_id }) => ({ business_id, user_id })),
      ...(secrets.get(row.id) ?? { secret: null, fault: 'it was not opened' }),
    }),
  )
  return groupBy(entries, ({ vendor_id }) => vendor_id)
}

const groupBy = <Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> => {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}
