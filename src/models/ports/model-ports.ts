import type { Secret } from '../../infra/secrets/secret.ts'
import type { ModelMessage, ModelTool, ToolCallRequest } from '../../state/ports/model-messages.ts'
import type { DialectName, ModelReply, ModelRequest } from '../../state/ports/models.ts'
import type { VisitNote } from '../../state/ports/tracer.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import type { Json, Usage } from '../../state/runtime-state.ts'
import type { Scenario } from '../../state/scenario.ts'
import { addUsage, noUsage } from '../../state/token-usage.ts'
import type { FormatPaths, FormatView } from '../schemas/response-format.ts'
import type { RoutingStrategy } from '../schemas/routing.ts'
import type { ProviderError } from '../transport/provider-errors.ts'

/** Zero tokens. */
export const noMeteredUsage: MeteredUsage = { ...noUsage, cached_tokens: 0, reasoning_tokens: 0 }

/** Sum of two counts, in tokens. */
export const addMeteredUsage = (a: MeteredUsage, b: MeteredUsage): MeteredUsage => ({
  ...addUsage(a, b),
  cached_tokens: a.cached_tokens + b.cached_tokens,
  reasoning_tokens: a.reasoning_tokens + b.reasoning_tokens,
})

/** Usage as actions store it. */
export const toPlainUsage = ({ prompt_tokens, completion_tokens, total_tokens }: MeteredUsage): Usage => ({
  prompt_tokens,
  completion_tokens,
  total_tokens,
})

/** The key of a model at its server: the endpoint's id and the upstream name. */
export const toServerModelKey = ({ endpoint, upstream_name }: ModelEntry): string =>
  `${endpoint.id} ${upstream_name}`

/** The caller that a model call is made and paid for. */
export type ModelCaller = {
  business_id: string
  user_id: string | null
  run_id: string | null
  /** Of a call without a run; a run has the token that submitted it. */
  token_id?: string | null
  /** The visit of the run on whose behalf it calls. */
  visit?: VisitNote | undefined
}

/** Whole tokens. `cached_tokens` are part of the prompt's, `reasoning_tokens` of the completion's. */
export type MeteredUsage = Usage & { cached_tokens: number; reasoning_tokens: number }

/** Prices in millionths of the currency per million tokens. */
export type MicroPrices = { input: number; output: number; cached_input: number; currency: string }

/** A vendor of the registry. */
export type VendorEntry = { id: string; name: string; active: boolean }

/** A key of a vendor. */
export type KeyEntry = {
  id: string
  vendor_id: string
  label: string
  active: boolean
  /** `monthly_cost` in millionths. Null: no such limit. */
  limits: { rpm: number | null; tpm: number | null; daily_tokens: number | null; monthly_cost: number | null }
  /** Empty: the shared pool. */
  grants: readonly { business_id: string | null; user_id: string | null }[]
  /** Null: it cannot be read (`error` says why), and the key is skipped. */
  secret: Secret | null
  error: string | null
}

/** An endpoint of a vendor. */
export type EndpointEntry = {
  id: string
  vendor_id: string
  name: string
  active: boolean
  base_url: string
  protocol: 'openai' | 'http'
  categories: readonly string[]
  /** `{{key}}` in a value is replaced by the secret of the key. */
  headers: Readonly<Record<string, string>>
  timeouts: { firstByteMs: number; idleMs: number; totalMs: number }
  allow_private: boolean
  /** Why its headers cannot be read: the endpoint is skipped. */
  error?: string | null
}

/** A model of the registry, with its vendor and endpoint. */
export type ModelEntry = {
  id: string
  /** The alias. */
  name: string
  vendor: VendorEntry
  endpoint: EndpointEntry
  upstream_name: string
  category: string
  dialect: DialectName
  /** Its vendor refuses the field `stop`. */
  refuses_stop: boolean
  /** How it goes on with a reply that was cut. */
  continuation: 'none' | 'prefill' | 'flag'
  context_window: number | null
  max_output: number | null
  prices: MicroPrices | null
  /** Null: the endpoint speaks OpenAI's protocol, whose reader is built in. */
  format: FormatView | null
  capabilities: readonly string[]
  active: boolean
}

/** The models that serve a role or a category. */
export type RouteEntry = {
  models: readonly { model: string; weight: number }[]
  strategy: RoutingStrategy
}

/** The registry in the memory of one process: replaced as a whole when anything changes. */
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

/** A view that follows the database: a tenth of a second after a hint, and within a second by polling the version. @internal */
export type Registry = AsyncDisposable & {
  readonly view: RegistryView
  /** Reads changes now and notifies the other processes; called after a change by this process. Never rejects. */
  refresh(): Promise<void>
}

/** A part of a user message, in OpenAI's shape. */
export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' } }
/** A message of a conversation. */
export type CanonicalMessage =
  | Exclude<ModelMessage<string>, { role: 'user' }>
  /** The beginning of the reply, by the flag of some vendors. */
  | { role: 'assistant'; content: string; prefix: true; tool_calls?: undefined; reasoning?: undefined }
  | { role: 'user'; content: string | ContentPart[] }

/** A request to a model of any vendor. Also the data of request templates. */
export type CanonicalRequest = {
  role: string
  messages: readonly CanonicalMessage[]
  /** The parts of the messages, as in `ModelRequest`; no provider sends them. */
  parts?: readonly PromptPart[]
  tools: readonly ModelTool[]
  /** JSON Schema of the answer, or null. */
  schema: Record<string, unknown> | null
  /** Texts to embed, or documents to rank against `query`. */
  input: readonly string[]
  query: string | null
  /** For images, videos and speech; what to listen for in a recording. */
  prompt: string | null
  /** Images to edit or to begin with, or a recording; `base64` is their content. */
  files?: readonly { name: string; mime_type: string; base64: string }[]
  /** Sampling and the like, in OpenAI's names: temperature, top_p, max_tokens, stop, seed, tool_choice … */
  parameters: Readonly<Record<string, Json>>
  stream: boolean
  /** Where the reply ends, as in `ModelRequest`; providers send no more of it than the parameter `stop`. */
  end?: NonNullable<ModelRequest['end']>
}

/** An image, a video or a recording. */
export type Media = { url: string } | { base64: string; mime_type: string | null }

/** One result for all vendors and categories. */
export type CanonicalResult = {
  text: string
  reasoning: string
  tool_calls: readonly ToolCallRequest[]
  images: readonly Media[]
  video: Media | null
  audio: Media | null
  embeddings: readonly (readonly number[])[]
  ranking: readonly { index: number; score: number }[]
  /** The job of an answer that comes later. */
  job: { id: string; status: string | null } | null
  finish: ModelReply['finish']
  /** Characters after the end of the reply, which are left out. */
  cut?: number
  /** The text as it came, where it held thoughts. */
  raw?: string
  /** Null: the vendor reported none. */
  usage: MeteredUsage | null
  model: string | null
}

/** A result without content. */
export const emptyResult: CanonicalResult = {
  text: '',
  reasoning: '',
  tool_calls: [],
  images: [],
  video: null,
  audio: null,
  embeddings: [],
  ranking: [],
  job: null,
  finish: 'stop',
  usage: null,
  model: null,
}

/** A chunk of a streamed answer; `restart`: it voids the chunks before. */
export type ResultDelta = { text: string; reasoning: string; restart?: true }

/** A compiled response format. Throws `UnreadableResponseError` where an answer differs from the format. */
export type ResponseReader = {
  /** `usedIds` as for `stream`. */
  read(raw: unknown, usedIds?: readonly string[]): CanonicalResult
  /** For one streamed answer; null where the format has no `stream`. */
  stream(usedIds: readonly string[]): StreamReader | null
}
/** Reads one streamed answer. */
export type StreamReader = {
  /** One event, its JSON parsed. */
  take(event: unknown): ResultDelta
  /** How much content has come; it does not grow with an event that has none. */
  size(): number
  /** Whether the vendor has reported how its answer ended. */
  finished(): boolean
  /** The last usage so far. */
  usage(): MeteredUsage | null
  end(): CanonicalResult
}

/** The name of a path of a response format. */
export type PathName = keyof FormatPaths

/** One provider request. `endsAtMs` is monotonic and belongs to the whole call. */
export type ProviderRequest = {
  model: ModelEntry
  key: KeyEntry | null
  ask: CanonicalRequest
  endsAtMs: number
  /** Ids of tool calls in the conversation so far: ids of the answer are made different from them. */
  usedIds: readonly string[]
  onDelta(delta: ResultDelta): void
  /** Called at each part of an answer that is no error. */
  onAnswer?(): void
  /** Aborted where the reply is over: what has come by then is the answer. */
  over?: AbortSignal
  /** The usage so far, whenever the vendor reports it: an aborted call is metered by it. */
  onUsage?(usage: MeteredUsage): void
  /** The raw answer: its one body, or each event. For tests by an admin. */
  onRaw?(raw: unknown): void
  /** The request makes a job, whose result `poll` brings. It is called in the moment before the first byte. */
  beforeSubmit?(): void
}

/** How one provider request ended. Rejects only when the caller aborts, with the signal's reason. */
export type ProviderOutcome =
  | { ok: true; result: CanonicalResult }
  | {
      ok: false
      error: ProviderError
      usage: MeteredUsage | null
      /** The answer that could not be read, at most 64 KB, not yet redacted. */
      raw?: string
      place?: string
    }

/** A job that goes on: in how many milliseconds to poll it again. */
export type PendingJob = { againInMs: number }

/** A protocol of vendors: `openai` through LangChain, `http` through templates and formats. */
export type Provider = {
  /** Loads what a first request needs: no request may wait between its reservation and its sending. */
  prepare?(): Promise<unknown>
  send(request: ProviderRequest, signal: AbortSignal): Promise<ProviderOutcome>
  /** Polls the job that such a request made once: what became of it, or when to poll again. */
  poll?(request: ProviderRequest, jobId: string, signal: AbortSignal): Promise<ProviderOutcome | PendingJob>
}

/** A request that is about to be sent. */
export type Reservation = {
  request_id: string
  caller: ModelCaller
  role: string
  /** The tool that made the call; null: a node, or no run. */
  tool: string | null
  /** The visit that made it; null: none. */
  visit_id: string | null
  model: ModelEntry
  key: KeyEntry | null
  /** Estimated maximum: tokens of the prompt and of the longest answer. */
  estimate: { prompt_tokens: number; completion_tokens: number }
  /** Milliseconds after which it counts as lost. */
  expiresInMs: number
}
/** Whether the limits of the key allow a request. */
export type ReservationResult =
  | { granted: true }
  | { granted: false; limit: 'rpm' | 'tpm' | 'daily_tokens' | 'monthly_cost'; retryAfterMs: number }
/** How a reserved request ended. */
export type Settlement = {
  status: 'succeeded' | 'failed' | 'aborted'
  error_code: string | null
  /** Null: the vendor reported none; then `estimate` counts. */
  usage: MeteredUsage | null
  estimate: { prompt_tokens: number; completion_tokens: number } | null
  ms: number
}

/** The ledger. A reservation of a key without limits costs the caller no round trip. @internal */
export type Meter = AsyncDisposable & {
  reserve(reservation: Reservation): Promise<ReservationResult>
  /** Never throws and does not block; it is retried until the database has it. Once per request_id. */
  settle(reservation: Reservation, settlement: Settlement): void
  /** Resolves once all that was settled so far is in the ledger. */
  flush(): Promise<void>
}
