import { Secret } from '../../src/infra/secrets/secret.ts'
import type { Candidate, HealthLookup } from '../../src/models/ports/call-ports.ts'
import type {
  EndpointEntry,
  KeyEntry,
  ModelCaller,
  ModelEntry,
  RegistryView,
  RouteEntry,
  VendorEntry,
} from '../../src/models/ports/model-ports.ts'
import type { ModelChoice } from '../../src/models/routing/choose-model-and-key.ts'

/** Entries of a registry view, made by hand. */

export const vendor = (id: string, more: Partial<VendorEntry> = {}): VendorEntry => ({
  id,
  name: id,
  active: true,
  ...more,
})

export const endpoint = (name: string, more: Partial<EndpointEntry> = {}): EndpointEntry => ({
  id: `end_${name}`,
  vendor_id: 'v1',
  name,
  active: true,
  base_url: 'https://a.example/v1',
  protocol: 'openai',
  categories: [],
  headers: {},
  timeouts: { firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 },
  allow_private: false,
  ...more,
})

export const model = (name: string, more: Partial<ModelEntry> = {}): ModelEntry => ({
  id: `mod_${name}`,
  name,
  vendor: vendor('v1'),
  endpoint: endpoint(name),
  upstream_name: name,
  category: 'text',
  dialect: 'tools',
  refuses_stop: false,
  continuation: 'none',
  context_window: null,
  max_output: null,
  prices: null,
  format: null,
  capabilities: [],
  active: true,
  ...more,
})

export const key = (id: string, vendor_id: string, more: Partial<KeyEntry> = {}): KeyEntry => ({
  id,
  vendor_id,
  label: id,
  active: true,
  limits: { rpm: null, tpm: null, daily_tokens: null, monthly_cost: null },
  grants: [],
  secret: new Secret(`sk-${id}`),
  error: null,
  ...more,
})

export const route = (
  models: readonly (string | { model: string; weight: number })[],
  strategy: RouteEntry['strategy'] = 'priority',
): RouteEntry => ({
  models: models.map((one) => (typeof one === 'string' ? { model: one, weight: 1 } : one)),
  strategy,
})

export const view = (parts: {
  models?: readonly ModelEntry[]
  keys?: readonly KeyEntry[]
  routesByRole?: Readonly<Record<string, RouteEntry>>
  routesByCategory?: Readonly<Record<string, RouteEntry>>
}): RegistryView => {
  const keysByVendor = new Map<string, KeyEntry[]>()
  for (const one of parts.keys ?? [])
    keysByVendor.set(one.vendor_id, [...(keysByVendor.get(one.vendor_id) ?? []), one])
  return {
    version: 1,
    models: new Map((parts.models ?? []).map((one) => [one.name, one])),
    routesByRole: new Map(Object.entries(parts.routesByRole ?? {})),
    routesByCategory: new Map(Object.entries(parts.routesByCategory ?? {})),
    keysByVendor,
    scenarios: new Map(),
  }
}

export const caller = (business_id = 'b1', user_id: string | null = 'u1'): ModelCaller => ({
  business_id,
  user_id,
  run_id: null,
})

export const healthy: HealthLookup = { stateOf: () => null }

/** All candidates of a choice. */
export const taken = ({ candidates }: ModelChoice): Candidate[] => [...candidates]
