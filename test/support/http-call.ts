import { openEgress } from '../../src/infra/egress/egress.ts'
import { Secret } from '../../src/infra/secrets/secret.ts'
import { collectCallIds } from '../../src/models/chat/chat-request.ts'
import type {
  CanonicalRequest,
  CanonicalResult,
  EndpointEntry,
  KeyEntry,
  MeteredUsage,
  ModelEntry,
  ProviderOutcome,
  ResultDelta,
} from '../../src/models/ports/model-ports.ts'
import type { FormatInput, FormatView } from '../../src/models/schemas/response-format.ts'
import { createCountingClock, never, patient } from './models.ts'
import { responseFormats } from './response-formats.ts'

/** One call of the http provider over the real egress, and the parts it received. */

export const canary = 'sk-canary-7f3b0c55d1'

const formatOf = (input: FormatInput): FormatView => ({
  ...input,
  id: 'fmt_0123456789abcdef01234567',
  built_in: false,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
})

export const keyOf = (secret: string | null = canary): KeyEntry => ({
  id: 'key_0123456789abcdef01234567',
  vendor_id: 'ven_0123456789abcdef01234567',
  label: 'first',
  active: true,
  limits: { rpm: null, tpm: null, daily_tokens: null, monthly_cost: null },
  grants: [],
  secret: secret === null ? null : new Secret(secret),
  error: null,
})

export const modelOf = (
  format: FormatInput | null,
  baseUrl: string,
  endpoint: Partial<EndpointEntry> = {},
): ModelEntry => ({
  id: 'mod_0123456789abcdef01234567',
  name: 'alias',
  vendor: { id: 'ven_0123456789abcdef01234567', name: 'vendor', active: true },
  endpoint: {
    id: 'end_0123456789abcdef01234567',
    vendor_id: 'ven_0123456789abcdef01234567',
    name: 'main',
    active: true,
    base_url: baseUrl,
    protocol: 'http',
    categories: [],
    headers: {},
    timeouts: patient,
    allow_private: true,
    ...endpoint,
  },
  upstream_name: 'upstream-1',
  category: format?.category ?? 'text',
  dialect: 'tools',
  refuses_stop: false,
  continuation: 'none',
  context_window: null,
  max_output: null,
  prices: null,
  format: format === null ? null : formatOf(format),
  capabilities: [],
  active: true,
})

export const askOf = (more: Partial<CanonicalRequest> = {}): CanonicalRequest => ({
  role: 'planner',
  messages: [
    { role: 'system', content: 'You plan.' },
    { role: 'user', content: 'Say hello' },
  ],
  tools: [],
  schema: null,
  input: [],
  query: null,
  prompt: null,
  parameters: {},
  stream: false,
  ...more,
})

export type ReceivedParts = { deltas: ResultDelta[]; usages: MeteredUsage[]; raws: unknown[] }
export type CallResult = ReceivedParts & { outcome: ProviderOutcome }

export type CallOptions = {
  model: ModelEntry
  ask?: Partial<CanonicalRequest>
  key?: KeyEntry | null
  signal?: AbortSignal
  totalMs?: number
  maxBytes?: number
  maxEvent?: number
  /** Called at each piece of the answer. */
  onDelta?(delta: ResultDelta): void
}

/** A provider that is kept over several calls, with its way out. */
export const openCaller = (options: Pick<CallOptions, 'maxBytes' | 'maxEvent'> = {}) => {
  const egress = openEgress()
  const clock = createCountingClock()
  const provider = responseFormats.openProvider({ egress, clock, ...options })
  const call = async ({
    model,
    key = keyOf(),
    signal = never(),
    totalMs,
    ...more
  }: CallOptions): Promise<CallResult> => {
    const ask = askOf(more.ask)
    const received: ReceivedParts = { deltas: [], usages: [], raws: [] }
    const outcome = await provider.send(
      {
        model,
        key,
        ask,
        endsAtMs: clock.monotonicMs() + (totalMs ?? model.endpoint.timeouts.totalMs),
        usedIds: collectCallIds(ask.messages),
        onDelta: (delta) => {
          received.deltas.push(delta)
          more.onDelta?.(delta)
        },
        onUsage: (usage) => void received.usages.push(usage),
        onRaw: (raw) => void received.raws.push(raw),
      },
      signal,
    )
    return { ...received, outcome }
  }
  return { call, clock, [Symbol.asyncDispose]: () => egress[Symbol.asyncDispose]() }
}

/** One call with a provider of its own; no clock of it may be running afterwards. */
export const call = async (options: CallOptions): Promise<CallResult> => {
  const { maxBytes, maxEvent } = options
  await using caller = openCaller({
    ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(maxEvent === undefined ? {} : { maxEvent }),
  })
  return await caller.call(options)
}

export const resultOf = ({ outcome }: CallResult): CanonicalResult => {
  if (outcome.ok) return outcome.result
  throw new Error(`the call failed: ${outcome.error.code} ${outcome.error.what}`)
}

export const errorOf = ({ outcome }: CallResult) => {
  if (outcome.ok) throw new Error('the call succeeded')
  return outcome
}
