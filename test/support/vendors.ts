import type { Runtime } from '../../src/app/api.ts'
import type { ModelRetryDelays } from '../../src/app/runtime-options.ts'
import type { ModelResponse, ModelSelector } from '../../src/models/ports/call-ports.ts'
import type { CanonicalRequest, ModelCaller, ResultDelta } from '../../src/models/ports/model-ports.ts'
import {
  endpointInputSchema,
  keyInputSchema,
  modelInputSchema,
  vendorInputSchema,
} from '../../src/models/schemas/catalog.ts'
import { routeInputSchema } from '../../src/models/schemas/routing.ts'
import type { FakeModel, FakeReply, FakeResponder } from './fake-model/fake-model.ts'
import { askOf } from './http-call.ts'

/** Hands for the call path: vendors made through the registry itself, on fake servers that tell keys apart. */

export const quickWaits: ModelRetryDelays = {
  cooling: { baseMs: 20, maxMs: 60 },
  disabled: { baseMs: 1500, maxMs: 1500 },
  retry: { attempts: 4, baseMs: 5, maxMs: 20 },
}

export const someone: ModelCaller = { business_id: 'default', user_id: 'u1', run_id: null }

export type VendorOptions = {
  /** Labels, which are their secrets too. */
  keys: readonly string[]
  limits?: Record<string, unknown>
  /** Aliases; each is also the upstream name. */
  models: readonly string[]
  model?: Record<string, unknown>
  endpoint?: Record<string, unknown>
}

const secretOf = (label: string): string => `sk-secret-of-${label}`

/** A vendor with its keys, one endpoint and models; gives the ids by label and alias. */
export const addVendor = async (
  { admin: { registry } }: Pick<Runtime, 'admin'>,
  name: string,
  baseUrl: string,
  { keys, limits = {}, models, model = {}, endpoint = {} }: VendorOptions,
) => {
  const vendor = await registry.vendors.create({}, vendorInputSchema.parse({ name }))
  const scope = { vendor_id: vendor.id }
  const ids: Record<string, string> = { vendor: vendor.id }
  for (const label of keys) {
    const key = await registry.keys.create(
      scope,
      keyInputSchema.parse({ label, secret: secretOf(label), limits }),
    )
    ids[label] = key.id
  }
  const made = await registry.endpoints.create(
    scope,
    endpointInputSchema.parse({ name, base_url: baseUrl, protocol: 'openai', ...endpoint }),
  )
  ids.endpoint = made.id
  for (const alias of models) {
    const input = { name: alias, upstream_name: alias, endpoint_id: made.id, ...model }
    ids[alias] = (await registry.models.create(scope, modelInputSchema.parse(input))).id
  }
  return ids
}

export const addRoute = (
  { admin: { registry } }: Pick<Runtime, 'admin'>,
  role: string,
  models: readonly string[],
): Promise<unknown> =>
  registry.routes.create({}, routeInputSchema.parse({ role, models: models.map((model) => ({ model })) }))

const plainAsk = (role: string): CanonicalRequest =>
  askOf({ role, messages: [{ role: 'user', content: 'Say hello' }], stream: true })

/** One call, with what was heard of it. */
export const callWith = async (
  { modelService }: Pick<Runtime, 'modelService'>,
  wanted: ModelSelector,
  {
    ask = {},
    caller = someone,
    signal = new AbortController().signal,
    onDelta = () => {},
  }: {
    ask?: Partial<CanonicalRequest>
    caller?: ModelCaller
    signal?: AbortSignal
    onDelta?: (delta: ResultDelta, attempt: number) => void
  } = {},
): Promise<ModelResponse> =>
  modelService.ask(wanted, { ...plainAsk(wanted.role), ...ask }, caller, onDelta, signal)

/** Which keys a server was asked with, in order, by label. */
export const labelsOf = (server: Pick<FakeModel, 'requests'>): string[] =>
  server.requests().map(({ headers }) => String(headers.authorization).replace('Bearer sk-secret-of-', ''))

/** Answers by the label of the key; the last one repeats. */
export const byKey = (answers: Record<string, readonly FakeReply[]>): FakeResponder => {
  const next = new Map<string, number>()
  return ({ headers }) => {
    const label = String(headers.authorization).replace('Bearer sk-secret-of-', '')
    const list = answers[label] ?? answers['*'] ?? []
    const at = next.get(label) ?? 0
    next.set(label, at + 1)
    return list[Math.min(at, list.length - 1)]
  }
}
