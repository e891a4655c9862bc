import type { Egress } from '../../src/infra/egress/port.ts'
import { openEgress } from '../../src/infra/egress.ts'
import { createCallCounts } from '../../src/infra/models/call/counts.ts'
import { createModelService } from '../../src/infra/models/call/service.ts'
import { createChooser } from '../../src/infra/models/choose/choose.ts'
import { createHealth } from '../../src/infra/models/health/health.ts'
import { answerOf } from '../../src/infra/models/offline/egress.ts'
import { createOpenAIProvider } from '../../src/infra/models/openai/provider.ts'
import type {
  EndpointEntry,
  KeyEntry,
  Meter,
  ModelEntry,
  Provider,
  RegistryView,
} from '../../src/infra/models/ports.ts'
import type { Retry } from '../../src/infra/models/wire/retry.ts'
import { Secret } from '../../src/infra/secrets/secret.ts'
import { silentLog } from '../../src/infra/silent-log.ts'
import type { Clock, Log, Models } from '../../src/state/ports.ts'

/** The real call path over one server and one key, as the settings would give it, without a database. */
export type OpenAIOptions = {
  apiKey?: string
  /** Up to and with `/v1`. */
  baseUrl: string
  model: string
  /** Other names it answers to. */
  models?: readonly string[]
  /** In place of the real way out. */
  fetch?: Fetch
  clocks: EndpointEntry['timeouts']
  retry: Retry
  clock: Clock
  log?: Log
  maxBytes?: number
  random?: () => number
}

export type Fetch = typeof globalThis.fetch

/** A fetch as the way out. */
export const egressOver = (fetch: Fetch): Egress => ({
  request: async (url, { method, headers, body, signal }) =>
    answerOf(
      await fetch(url, {
        ...(method && { method }),
        ...(headers && { headers }),
        body: typeof body === 'string' ? body : null,
        signal: signal ?? null,
        redirect: 'manual',
      }),
    ),
  [Symbol.asyncDispose]: async () => {},
})

/** Keeps no books. */
const noMeter: Meter = {
  reserve: async () => ({ granted: true }),
  settle: () => {},
  flush: async () => {},
  [Symbol.asyncDispose]: async () => {},
}

const noProvider: Provider = { send: () => Promise.reject(new Error('nothing here speaks http')) }

export const openModels = (options: OpenAIOptions): Models => {
  const { apiKey, baseUrl, model, models = [], clock, clocks, retry, random, log = silentLog } = options
  const vendor = { id: 'ven_settings', name: 'settings', active: true }
  const endpoint: EndpointEntry = {
    id: 'end_settings',
    vendor_id: vendor.id,
    name: 'settings',
    active: true,
    base_url: baseUrl,
    protocol: 'openai',
    categories: [],
    headers: {},
    timeouts: clocks,
    allow_private: true,
  }
  const entry = (name: string): ModelEntry => ({
    id: name === model ? 'mod_settings' : `mod_settings_${name}`,
    name,
    vendor,
    endpoint,
    upstream_name: name,
    category: 'text',
    dialect: 'tools',
    context_window: null,
    max_output: null,
    prices: null,
    format: null,
    capabilities: [],
    active: true,
  })
  const key: KeyEntry = {
    id: 'key_settings',
    vendor_id: vendor.id,
    label: 'settings',
    active: true,
    limits: { rpm: null, tpm: null, daily_tokens: null, monthly_cost: null },
    grants: [],
    secret: new Secret(apiKey ?? ''),
    fault: null,
  }
  const view: RegistryView = {
    version: 1,
    models: new Map([model, ...models].map((name) => [name, entry(name)])),
    routesByRole: new Map(),
    routesByCategory: new Map(),
    scenarios: new Map(),
    keysByVendor: new Map(apiKey === undefined ? [] : [[vendor.id, [key]]]),
  }
  const waits = { baseMs: retry.baseMs, maxMs: retry.maxMs }
  const health = createHealth({
    sql: null,
    hints: null,
    clock,
    log,
    cooling: waits,
    disabled: waits,
    ...(random && { random }),
  })
  const egress = options.fetch ? egressOver(options.fetch) : openEgress()
  const openai = createOpenAIProvider({
    egress,
    readerOf: () => null,
    clock,
    log,
    ...(options.maxBytes && { maxBytes: options.maxBytes }),
  })
  return createModelService({
    registry: { view },
    chooser: createChooser(health, random),
    providers: { openai, http: noProvider },
    meter: noMeter,
    health,
    clock,
    log,
    retry,
    ...(random && { random }),
    redact: (text) => text,
    unread: { keep: () => {} },
    counts: createCallCounts(),
  }).for({ business_id: 'default', user_id: null, run_id: null })
}
