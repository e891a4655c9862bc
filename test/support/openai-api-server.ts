import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import OpenAI from 'openai'
import type { AppOptions } from '../../src/app/http/app.ts'
import { openEgress } from '../../src/infra/egress/egress.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { Secret } from '../../src/infra/secrets/secret.ts'
import { createModelGateway } from '../../src/models/call/model-gateway.ts'
import { createModelHealth } from '../../src/models/health/model-health.ts'
import type {
  EndpointEntry,
  Meter,
  ModelEntry,
  RegistryView,
  Reservation,
  ReservationResult,
  Settlement,
} from '../../src/models/ports/model-ports.ts'
import { createOpenAIProvider } from '../../src/models/providers/openai/openai-provider.ts'
import { createModelChooser } from '../../src/models/routing/choose-model-and-key.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import { type FakeModel, startFakeModel } from './fake-model/fake-model.ts'
import { createFakeRuntime, type FakeRuntime } from './fake-runtime.ts'
import { startServer, type TestServer } from './http.ts'
import { responseFormats } from './response-formats.ts'

export const vendorKey = 'sk-of-the-vendor-0123456789'

/** The OpenAI-compatible endpoint over the real model gateway, from a registry in memory to a fake vendor on loopback; no database. */
export type OpenAIServer = AsyncDisposable & {
  server: TestServer
  fake: FakeRuntime
  vendor: FakeModel
  /** What a client was asked to embed, request by request. */
  embedded: Record<string, unknown>[]
  settled: (Settlement & Pick<Reservation, 'caller' | 'role'>)[]
  /** What the meter says to the next reservations; null: granted. */
  limit: Extract<ReservationResult, { granted: false }> | null
  /** How often the meter was called. */
  reservations: number
  /** The official client, with the token of a business. */
  client(options?: ConstructorParameters<typeof OpenAI>[0]): OpenAI
}

/** OpenAI's embeddings: a text becomes its length, its first character and a half. */
const startEmbedder = async () => {
  const requests: Record<string, unknown>[] = []
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as { input: string[] }
    requests.push(body)
    const data = body.input.map((text, index) => ({
      object: 'embedding',
      index,
      embedding: [text.length, text.charCodeAt(0), 0.5],
    }))
    const usage = { prompt_tokens: 2 * body.input.length, total_tokens: 2 * body.input.length }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ object: 'list', model: 'e', data, usage }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    requests,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const viewOf = (chatUrl: string, embeddingsUrl: string, others: readonly string[]): RegistryView => {
  const vendor = { id: 'ven_1', name: 'acme-ai', active: true }
  const endpoint = (name: string, base_url: string): EndpointEntry => ({
    id: `end_${name}`,
    vendor_id: vendor.id,
    name,
    active: true,
    base_url,
    protocol: 'openai',
    categories: [],
    headers: {},
    timeouts: { firstByteMs: 20_000, idleMs: 20_000, totalMs: 30_000 },
    allow_private: true,
  })
  const model = (name: string, category: string, at: EndpointEntry): ModelEntry => ({
    id: `mod_${name}`,
    name,
    vendor,
    endpoint: at,
    upstream_name: `upstream-${name}`,
    category,
    dialect: 'tools',
    refuses_stop: false,
    continuation: 'none',
    context_window: null,
    max_output: null,
    prices: null,
    format: null,
    capabilities: ['chat'],
    active: true,
  })
  const chat = endpoint('chat', chatUrl)
  const models = [
    model('chatty', 'text', chat),
    model('seeing/eye:1', 'multimodal', chat),
    model('embedder', 'embedding', endpoint('embeddings', embeddingsUrl)),
    ...others.map((name) => model(name, 'text', chat)),
  ]
  const key = {
    id: 'key_1',
    vendor_id: vendor.id,
    label: 'the key',
    active: true,
    limits: { rpm: null, tpm: null, daily_tokens: null, monthly_cost: null },
    grants: [],
    secret: new Secret(vendorKey),
    error: null,
  }
  return {
    version: 1,
    models: new Map(models.map((one) => [one.name, one])),
    routesByRole: new Map(),
    routesByCategory: new Map(),
    scenarios: new Map(),
    keysByVendor: new Map([[vendor.id, [key]]]),
  }
}

/** `others`: the aliases of more models; `clock`: that of the model gateway. */
export const startOpenAIServer = async (
  options: Partial<AppOptions> = {},
  others: readonly string[] = [],
  clock: Clock = systemClock,
): Promise<OpenAIServer> => {
  const vendor = await startFakeModel()
  const embedder = await startEmbedder()
  const egress = openEgress()
  const log = silentLog
  const waits = { baseMs: 1, maxMs: 5 }
  const health = createModelHealth({ sql: null, hints: null, clock, log, cooling: waits, disabled: waits })
  const meter: Meter = {
    reserve: async () => {
      endpoint.reservations += 1
      return endpoint.limit ?? { granted: true }
    },
    settle: ({ caller, role }, settlement) => void endpoint.settled.push({ ...settlement, caller, role }),
    flush: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
  const fake = createFakeRuntime()
  fake.runtime.modelService = createModelGateway({
    registry: { view: viewOf(vendor.baseUrl, embedder.baseUrl, others) },
    chooser: createModelChooser(health),
    providers: {
      openai: createOpenAIProvider({ egress, formats: responseFormats, clock, log }),
      http: { send: () => Promise.reject(new Error('nothing here speaks http')) },
    },
    meter,
    health,
    clock,
    redact: (text) => text,
    log,
    retry: { attempts: 2, ...waits },
    unread: { keep: () => undefined },
  })
  const tokens: [token: string, ...roles: string[]][] = [
    ['all', 'submit', 'read'],
    ['reader', 'read'],
    ['submitter', 'submit'],
  ]
  for (const [token, ...roles] of tokens) fake.tokens.set(token, { business_id: 'acme', roles })
  const server = await startServer({
    runtime: fake.runtime,
    auth: 'required',
    adminToken: 'the-admin',
    ...options,
  })
  const endpoint: OpenAIServer = {
    server,
    fake,
    vendor,
    embedded: embedder.requests,
    settled: [],
    limit: null,
    reservations: 0,
    client: (more = {}) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'all', maxRetries: 0, ...more }),
    async [Symbol.asyncDispose]() {
      await server.close()
      await egress[Symbol.asyncDispose]()
      await vendor.close()
      embedder.close()
    },
  }
  return endpoint
}
