import type { ModelMessage, ModelReply, ModelTool, ToolCallRequest } from '../../state/ports.ts'
import type { FormatView, Paths } from '../../state/registry/response-format.ts'
import type { Strategy } from '../../state/registry/routing.ts'
import type { Scenario } from '../../state/registry/scenario.ts'
import type { Json, Usage } from '../../state/runtime-state.ts'
import type { Secret } from '../secrets/secret.ts'
import type { Fault } from './wire/faults.ts'

/** What the parts of one model call hand to each other: view -> choice -> reservation -> provider -> reader -> ledger. */

/** For whom a call is made, and who pays for it. */
export type Caller = { business_id: string; user_id: string | null; run_id: string | null }

/** Whole tokens. `cached_tokens` are part of the prompt's, `reasoning_tokens` of the completion's. */
export type MeteredUsage = Usage & { cached_tokens: number; reasoning_tokens: number }

/** Millionths of the currency for a million tokens. */
export type MicroPrices = { input: number; output: number; cached_input: number; currency: string }

export type VendorEntry = { id: string; name: string; active: boolean }

export type KeyEntry = {
  id: string
  vendor_id: string
  label: string
  active: boolean
  /** `monthly_cost` in millionths. Null: no such limit. */
  limits: { rpm: number | null; tpm: number | null; daily_tokens: number | null; monthly_cost: number | null }
  /** Empty: the shared pool. */
  grants: readonly { business_id: string | null; user_id: string | null }[]
  /** Null: it could not be opened (`fault` says why), and the key is passed over. */
  secret: Secret | null
  fault: string | null
}

export type EndpointEntry = {
  id: string
  vendor_id: string
  name: string
  active: boolean
  base_url: string
  protocol: 'openai' | 'http'
  categories: readonly string[]
  /** `{{key}}` in a value stands for the secret of the key that is used. */
  headers: Readonly<Record<string, string>>
  timeouts: { firstByteMs: number; idleMs: number; totalMs: number }
  allow_private: boolean
  /** Why its headers could not be opened: it is passed over. */
  fault?: string | null
}

export type ModelEntry = {
  id: string
  /** The alias. */
  name: string
  vendor: VendorEntry
  endpoint: EndpointEntry
  upstream_name: string
  category: string
  dialect: 'tools' | 'xml'
  context_window: number | null
  max_output: number | null
  prices: MicroPrices | null
  /** Null: the endpoint speaks OpenAI's protocol and its own reader serves. */
  format: FormatView | null
  capabilities: readonly string[]
  active: boolean
}

export type RouteEntry = {
  models: readonly { model: string; weight: number }[]
  strategy: Strategy
}

/** The registry as one process holds it in memory: replaced as a whole when anything changed. */
export type RegistryView = {
  version: number
  /** By alias. */
  models: ReadonlyMap<string, ModelEntry>
  routesByRole: ReadonlyMap<string, RouteEntry>
  routesByCategory: ReadonlyMap<string, RouteEntry>
  keysByVendor: ReadonlyMap<string, readonly KeyEntry[]>
  /** Active ones, by name. */
  scenarios: ReadonlyMap<string, Scenario>
}

/** A view that follows the database: at once by a hint, and within a second by a look at the version. */
export type Registry = AsyncDisposable & {
  readonly view: RegistryView
  /** Reads now what has changed, and tells the other processes; called after a change of one's own. Never rejects. */
  refresh(): Promise<void>
}

/** A part of what a user says, in OpenAI's shape. */
export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' } }
export type AskMessage =
  | Exclude<ModelMessage, { role: 'user' }>
  | { role: 'user'; content: string | ContentPart[] }

/** What is asked of any model, whichever vendor answers. Also what request templates see. */
export type ModelAsk = {
  role: string
  messages: readonly AskMessage[]
  tools: readonly ModelTool[]
  /** JSON Schema of the answer, or null. */
  schema: Record<string, unknown> | null
  /** Texts to embed, or documents to rank against `query`. */
  input: readonly string[]
  query: string | null
  /** For images and videos. */
  prompt: string | null
  /** Sampling and the like, in OpenAI's names: temperature, top_p, max_tokens, stop, seed, tool_choice … */
  parameters: Readonly<Record<string, Json>>
  stream: boolean
}

export type Media = { url: string } | { base64: string; mime_type: string | null }

/** One result for all vendors and categories. */
export type CanonicalResult = {
  text: string
  reasoning: string
  tool_calls: readonly ToolCallRequest[]
  images: readonly Media[]
  video: Media | null
  embeddings: readonly (readonly number[])[]
  ranking: readonly { index: number; score: number }[]
  /** For answers that come later. */
  job: { id: string; status: string | null } | null
  finish: ModelReply['finish']
  /** Null: the vendor said nothing. */
  usage: MeteredUsage | null
  model: string | null
}

/** A piece of a streamed answer. */
export type ResultDelta = { text: string; reasoning: string }

/** A response format, compiled once. Throws `Unreadable` where an answer is not as the format says. */
export type AnswerReader = {
  /** `usedIds` as for `stream`. */
  read(raw: unknown, usedIds?: readonly string[]): CanonicalResult
  /** For one streamed answer; null where the format has no `stream`. */
  stream(usedIds: readonly string[]): StreamReader | null
}
export type StreamReader = {
  /** One event, its JSON parsed. */
  take(event: unknown): ResultDelta
  /** Whether the vendor said how its answer ended. */
  finished(): boolean
  /** The last usage so far. */
  usage(): MeteredUsage | null
  end(): CanonicalResult
}

export type PathName = keyof Paths

/** One provider request. `endsAtMs` is monotonic and belongs to the whole call. */
export type ProviderRequest = {
  model: ModelEntry
  key: KeyEntry | null
  ask: ModelAsk
  endsAtMs: number
  /** Ids of tool calls in the conversation so far: those of the answer come out unlike them. */
  usedIds: readonly string[]
  onDelta(delta: ResultDelta): void
  /** The usage so far, whenever the vendor tells it: an aborted call is metered by it. */
  onUsage?(usage: MeteredUsage): void
  /** The answer as it came: its one body, or event by event. For tests by an admin. */
  onRaw?(raw: unknown): void
}

/** How one provider request ended. Rejects only when the caller aborts, with the signal's reason. */
export type ProviderOutcome =
  | { ok: true; result: CanonicalResult }
  | {
      ok: false
      fault: Fault
      usage: MeteredUsage | null
      /** The answer that could not be read, at most 64 KB, not yet redacted. */
      raw?: string
      place?: string
    }

/** One way of talking to vendors: `openai` through LangChain, `http` through templates and formats. */
export type Provider = {
  /** Loads what a first request would wait for: between its reservation and its sending nothing may. */
  prepare?(): Promise<unknown>
  send(request: ProviderRequest, signal: AbortSignal): Promise<ProviderOutcome>
}

export type Reservation = {
  request_id: string
  caller: Caller
  role: string
  model: ModelEntry
  key: KeyEntry | null
  /** What it may cost at most as far as we can tell: tokens of the prompt and of the longest answer. */
  estimate: { prompt_tokens: number; completion_tokens: number }
  /** Milliseconds after which it counts as lost. */
  expiresInMs: number
}
export type Reserved =
  | { granted: true }
  | { granted: false; limit: 'rpm' | 'tpm' | 'daily_tokens' | 'monthly_cost'; retryAfterMs: number }
export type Settlement = {
  status: 'succeeded' | 'failed' | 'aborted'
  error_code: string | null
  /** Null: the vendor said nothing; `estimate` of what was sent and received is used where bytes came. */
  usage: MeteredUsage | null
  estimate: { prompt_tokens: number; completion_tokens: number } | null
  ms: number
}

/** The ledger. A reservation of a key without limits costs the caller no round trip. */
export type Meter = AsyncDisposable & {
  reserve(reservation: Reservation): Promise<Reserved>
  /** Never throws and is not waited for; it is tried until the database has it. Once per request_id. */
  settle(reservation: Reservation, settlement: Settlement): void
  /** Resolves once all that was settled so far is in the ledger. */
  flush(): Promise<void>
}
