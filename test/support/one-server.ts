import type { Egress } from '../../src/infra/egress/port.ts'
import { openEgress } from '../../src/infra/egress.ts'
import { createCallCounts } from '../../src/infra/models/call/counts.ts'
import { createModelService } from '../../src/infra/models/call/service.ts'
import { createChooser } from '../../src/infra/models/choose/choose.ts'
import { createHealth } from '../../src/infra/models/health/health.ts'
import { answerOf } from '../../src/infra/models/offline/egress.ts'
import { createOpenAIProvider } from '../../src/infra/models/openai/provider.ts'
import type { EndpointEntry, Meter, Provider } from '../../src/infra/models/ports.ts'
import type { Retry } from '../../src/infra/models/wire/retry.ts'
import { Secret } from '../../src/infra/secrets/secret.ts'
import { silentLog } from '../../src/infra/silent-log.ts'
import type { Clock, Log, Models } from '../../src/state/ports.ts'
import * as entries from './registry-view.ts'

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
  const more = { vendor_id: vendor.id, base_url: baseUrl, timeouts: clocks, allow_private: true }
  const endpoint = entries.endpoint('settings', more)
  const entryOf = (name: string) =>
    entries.model(name, {
      id: name === model ? 'mod_settings' : `mod_settings_${name}`,
      vendor,
      endpoint,
    })
  const keyOf = (secret: string) =>
    entries.key('key_settings', vendor.id, { label: 'settings', secret: new Secret(secret) })
  const view = entries.view({
    models: [model, ...models].map(entryOf),
    keys: apiKey === undefined ? [] : [keyOf(apiKey)],
  })
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
