import type { ImageDescription } from './files/image.ts'
import type { PreparedBefore, PreparedFiles, TableAnswer, TableQuery } from './files/ports.ts'
import type { Verdict } from './memory/gate.ts'
import type { FoundMemory, Note } from './memory/kinds.ts'
import type { Json, OriginFile, Usage } from './runtime-state.ts'

/** Everything the graph needs from outside. Services are injected; they are never data of the state. */

/** The smallest database: one statement, or several inside a transaction that the caller holds. */
export type Sql = {
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<{ rows: Row[] }>
}

export type Clock = {
  /** Wall clock, for people: times that are shown, never times that are compared across machines. */
  now(): Date
  /** Milliseconds that never go backwards, for deadlines. */
  monotonicMs(): number
  /** Resolves after `ms`, rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export type ModelRole =
  | 'distill'
  | 'understand'
  | 'planner'
  | 'reflection'
  | 'output'
  | 'compaction'
  | 'vision'

/** Tokens a model takes in all, and writes at the most; null where the registry does not say. */
export type ModelWindow = { context: number | null; output: number | null }

export type ToolCallRequest = {
  id: string
  name: string /** JSON text as the model wrote it. */
  arguments: string
}

/** What a model thought before it called tools, and the alias it has here: it goes back to its own vendor only. */
export type Reasoning = { text: string; by: string }

/** An image that is shown to a model; `data` is base64. */
export type ImagePart = { type: 'image'; mime_type: string; data: string }

export type ModelMessage =
  | { role: 'system'; content: string }
  /** Images stand before the text. Only models that see are chosen for them. */
  | { role: 'user'; content: string; images?: readonly ImagePart[] }
  | {
      role: 'assistant'
      content: string
      tool_calls?: readonly ToolCallRequest[]
      reasoning?: Reasoning
    }
  | { role: 'tool'; content: string; tool_call_id: string }

export type ModelTool = {
  name: string
  description: string /** JSON Schema. */
  parameters: Record<string, unknown>
}

export type ModelRequest = {
  /** Sent along as the header `x-mason-role`. */
  role: ModelRole
  messages: readonly ModelMessage[]
  /** Planner only. */
  tools?: readonly ModelTool[]
  /** Asks for a JSON answer of this shape; the schema's name is the role. */
  schema?: Record<string, unknown>
  /** The model to use in place of the role's own. */
  model?: string
  /** Streamed text; `attempt` counts from 1, a new attempt voids what came before. */
  onText?: (text: string, attempt: number) => void
}

export type ModelReply = {
  text: string
  reasoning: string
  tool_calls: readonly ToolCallRequest[]
  finish: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  /** Of all attempts that were billed, the failed ones too. */
  usage: Usage
  /** As the vendor calls it. */
  model: string
  /** The alias that answered; absent: as `model`. */
  by?: string
}

/** The port the model registry fills. Errors are MasonError with a `model_*` code; an abort rejects with the signal's reason. */
export type Models = {
  call(request: ModelRequest, signal: AbortSignal): Promise<ModelReply>
  /** What its run has cost so far, as people write money; the highest of several currencies. Absent: costs are not known. */
  cost?(): Promise<number>
  /** Whether a model that sees is set up for the caller. Absent: none is. */
  sees?(): boolean
  /** Whether a caller may name this model. */
  knows(model: string): boolean
  /** The smallest window among the models that may serve a role, so that a prompt fits whoever answers. Absent: unknown. */
  window?(role: ModelRole, model?: string): ModelWindow
  /** What serves, for people: `offline` is true for the built-in rules engine. */
  describe(): { name: string; offline: boolean; base_url: string | null }
}

/** The files of one run, and no others. */
export type Files = {
  /** The bytes of one of the run's own files. Throws `not_found` when they are gone; detail `{passing: true}`: it may pass. */
  read(file: Readonly<OriginFile>, signal: AbortSignal): Promise<Uint8Array>
  /** What files hold; one that cannot be read, or that there was no time for, says so in its entry. */
  prepare(
    files: readonly Readonly<OriginFile>[],
    before: PreparedBefore,
    signal: AbortSignal,
  ): Promise<PreparedFiles>
  /** The rows of one SELECT over tables of the run. */
  query(query: TableQuery, signal: AbortSignal): Promise<TableAnswer>
  /** What models said of images, by the hash of their bytes, within the run's business. */
  descriptions: {
    find(sha256: string): Promise<ImageDescription | null>
    keep(sha256: string, description: ImageDescription): Promise<void>
  }
}

/** Results over 32 KB, by content hash, of this business. */
export type Blobs = { read(sha256: string): Promise<Uint8Array | null> }

export type Users = {
  /** What is known of a user; empty for one never seen. */
  profile(userId: string): Promise<Record<string, Json>>
}

/** What is remembered of the run's user, and of nobody else. Texts are embedded on the way; who pays is the run's caller. */
export type Memories = {
  /** Whether anything is remembered of him. */
  any(): Promise<boolean>
  /** What has to do with a text, the best first. */
  search(text: string, limit: number, signal: AbortSignal): Promise<FoundMemory[]>
  /**
   * The same for the request of a turn, with the preferences that hold whatever is asked and the earlier talk it goes back
   * to; notes that they were used.
   */
  recall(text: string, limit: number, signal: AbortSignal): Promise<FoundMemory[]>
  /** Writes through the gate. `place` names the note within the run: written twice, it is there once. */
  remember(note: Note, place: string, signal: AbortSignal): Promise<Verdict & { id: string | null }>
}

export type Log = {
  debug(data: Record<string, unknown>, message: string): void
  info(data: Record<string, unknown>, message: string): void
  warn(data: Record<string, unknown>, message: string): void
  error(data: Record<string, unknown>, message: string): void
}

/** How a run ends; what `end` writes down and the run's row says. */
export type Outcome =
  | { status: 'completed'; reason: 'answered' | 'steps' | 'tokens' | 'cost' | 'time' | 'no_progress' }
  | {
      status: 'failed'
      reason: string
      error: { code: string; message: string; node?: string; detail?: unknown }
    }
  | { status: 'cancelled'; reason: string }

/** A question to a person; its answer must match `schema` (JSON Schema). */
export type Question = {
  question: string
  schema: Record<string, unknown>
  options: string[]
  expires_in_ms: number
}
export type PersonAnswer = { kind: 'answered'; answer: unknown } | { kind: 'expired' }

/** What a side effect needs: bytes fixed before the first send, and how to find out what became of them. */
export type EffectRequest = {
  /** keyed: the provider dedupes by our key within `windowMs`; queryable: `lookup` tells; manual: neither. */
  class: 'keyed' | 'queryable' | 'manual'
  windowMs?: number
  request: string
  /**
   * Resolves with what the provider said, a refusal too; throws only when it is not known whether it acted. `lastLook`
   * throws `lease_lost` where another worker may have the call by now: to be called in the moment before the first
   * byte, as the `beforeSend` of egress is.
   */
  send(request: string, key: string, lastLook: () => void, signal: AbortSignal): Promise<string>
  /** The response of an earlier send, or null when the provider never saw it. */
  lookup?(key: string, signal: AbortSignal): Promise<string | null>
}

/** What became of a call's side effect, and what is to be written down of it with the action. */
export type Effect = { effect_id: string; response: string }

/** One entry of the log as it goes to the database: texts are JSON, stored as they are. */
export type LogEntry = {
  seq: number
  /** Names this one attempt, so that a commit whose answer was lost is recognised. */
  attempt_id: string
  body: string
  patch: string
  usage: Usage
  /** Milliseconds of work of the run so far. */
  worked_ms: number
  effect: Effect | null
}

export type RunResult = {
  answer: string | null
  output_structure: Json
  error: Json
  /** Of the run's turn; absent where nobody knew it as the run ended. */
  goal?: string
}

/**
 * One claimed run as the graph sees its database. Everything is fenced by the claim's epoch and throws `lease_lost`
 * when another worker has the run.
 */
export type RunLog = {
  append(entry: LogEntry): Promise<void>
  finish(entry: LogEntry, outcome: Outcome, result: RunResult): Promise<void>
  /** This and `requeue` throw `cancelled` (the message is the reason) when the run is to be cancelled: end it then. */
  park(question: Question, call: CallRef, workedMs: number): Promise<void>
  requeue(runAt: string, workedMs: number): Promise<void>
  /**
   * Leaves the run to a worker of another version, which knows the node that it stands at; throws as `park` does. False: it
   * stood there for long enough to tell that there is none.
   */
  passOn(workedMs: number): Promise<boolean>
  /** The answer to the question this call asked, or null while there is none. */
  answerTo(call: CallRef): Promise<PersonAnswer | null>
  /** `resend`: a person said that an unknown one did not take place, so it may be sent again. */
  effect(
    call: CallRef,
    request: EffectRequest,
    signal: AbortSignal,
    options?: { resend: boolean },
  ): Promise<Effect>
  /** Keeps bytes by their content; gives their hash. */
  keepBlob(bytes: Uint8Array): Promise<string>
}

/** A call of the planner: the id of the planner's action and the index in its calls. */
export type CallRef = { plan_seq: number; index: number }
