import { openEgress } from '../../src/infra/egress/egress.ts'
import type { Egress, EgressResponse } from '../../src/infra/egress/egress-port.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { Secret } from '../../src/infra/secrets/secret.ts'
import { createModelGateway } from '../../src/models/call/model-gateway.ts'
import { createModelHealth } from '../../src/models/health/model-health.ts'
import type { EndpointEntry, Meter, Provider } from '../../src/models/ports/model-ports.ts'
import { createOpenAIProvider } from '../../src/models/providers/openai/openai-provider.ts'
import { createModelChooser } from '../../src/models/routing/choose-model-and-key.ts'
import type { RetryPolicy } from '../../src/models/transport/retry-policy.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import type { Log } from '../../src/state/ports/log.ts'
import type { DialectName, Models } from '../../src/state/ports/models.ts'
import * as entries from './registry-view.ts'
import { responseFormats } from './response-formats.ts'

/** The real call path over one server and one key, as the settings would give it, without a database. */
export type OpenAIOptions = {
  apiKey?: string
  /** Up to and with `/v1`. */
  baseUrl: string
  model: string
  /** Absent: it calls natively. */
  dialect?: DialectName
  /** Other names it answers to. */
  models?: readonly string[]
  /** In place of the real way out. */
  fetch?: Fetch
  clocks: EndpointEntry['timeouts']
  retry: RetryPolicy
  clock: Clock
  log?: Log
  maxBytes?: number
  random?: () => number
}

export type Fetch = typeof globalThis.fetch

/** A response of a fetch as an answer of egress. */
const toAnswer = ({ status, headers, body }: Response): EgressResponse => {
  const reader = body?.getReader()
  return {
    status,
    headers,
    body: {
      read: async () => (await reader?.read())?.value ?? null,
      cancel: () => void reader?.cancel().catch(() => undefined),
    },
  }
}

/** A fetch as the way out. */
export const egressOver = (fetch: Fetch): Egress => ({
  request: async (url, { method, headers, body, signal }) =>
    toAnswer(
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
  const more = { vendor_id: vendor.id, base_url: baseUrl, timeouts: clocks, allow_private: true }
  const endpoint = entries.endpoint('settings', more)
  const entryOf = (name: string) =>
    entries.model(name, {
      id: name === model ? 'mod_settings' : `mod_settings_${name}`,
      vendor,
      endpoint,
      ...(options.dialect && { dialect: options.dialect }),
    })
  const keyOf = (secret: string) =>
    entries.key('key_settings', vendor.id, { label: 'settings', secret: new Secret(secret) })
  const view = entries.view({
    models: [model, ...models].map(entryOf),
    keys: apiKey === undefined ? [] : [keyOf(apiKey)],
  })
  const waits = { baseMs: retry.baseMs, maxMs: retry.maxMs }
  const health = createModelHealth({
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
    formats: responseFormats,
    clock,
    log,
    ...(options.maxBytes && { maxBytes: options.maxBytes }),
  })
  return createModelGateway({
    registry: { view },
    chooser: createModelChooser(health, random),
    providers: { openai, http: noProvider },
    meter: noMeter,
    health,
    clock,
    log,
    retry,
    ...(random && { random }),
    redact: (text) => text,
    unread: { keep: () => {} },
  }).for({ business_id: 'default', user_id: null, run_id: null })
}
