import type { PromptPart } from '../prompt-part.ts'
import type { Usage } from '../runtime-state.ts'
import type { ModelMessage, ModelTool, ToolCallRequest } from './model-messages.ts'

/** What a model is called for; each role has its own model in the registry. */
export type ModelRole =
  | 'distill'
  | 'understand'
  | 'planner'
  | 'reflection'
  | 'output'
  | 'compaction'
  | 'vision'

/** How a model calls tools: by the protocol of its vendor, or written out in the language of the dialogue. */
export type DialectName = 'tools' | 'xml'

/** Tokens a model accepts in all, and writes at most; null where the registry has no figure. */
export type ModelWindow = { context: number | null; output: number | null }

/** One call of a model. */
export type ModelRequest = {
  /** Sent along as the header `x-mason-role`. */
  role: ModelRole
  messages: readonly ModelMessage[]
  /** What `promptText` made the text of the messages from, without rounds of calls. Never sent to a vendor. */
  parts?: readonly PromptPart[]
  /** Planner only. */
  tools?: readonly ModelTool[]
  /** Asks for a JSON answer of this shape; the schema's name is the role. */
  schema?: Record<string, unknown>
  /** The model to use in place of the role's own. */
  model?: string
  /** Only models of this dialect are tried; absent: any. */
  dialect?: DialectName
  /** Milliseconds that the run has left: a call that would wait longer for a vendor that is down ends at once. */
  timeLeftMs?: number
  /** Models of another dialect can be asked after these: each of these is tried once, without a wait. */
  hasOthers?: boolean
  /**
   * The reply ends where one of the texts of `stop` begins, or 200 ms after it is whole. `watch` is called for each attempt, and
   * what it returns with each streamed text: whether the reply is whole. What comes later was not written. `continues`: a
   * reply that was cut may be continued, since it was cut within an answer.
   */
  end?: { stop: readonly string[]; watch(): (text: string) => boolean; continues(text: string): boolean }
  /** Streamed text; `attempt` counts from 1, a new attempt voids what came before. */
  onText?: (text: string, attempt: number) => void
}

/** What a model replied. */
export type ModelReply = {
  text: string
  reasoning: string
  tool_calls: readonly ToolCallRequest[]
  /** `length`: it was cut. `unknown`: for a reason that is not in our table. */
  finish: 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'unknown'
  /** How many characters came after its end. Absent: none. */
  cut?: number
  /** The text as it came, where thoughts were split off from it. */
  raw?: string
  /** Of all attempts that were billed, the failed ones too. */
  usage: Usage
  /** The vendor's name of it. */
  model: string
  /** The alias that answered; absent: as `model`. */
  by?: string
}

/** Whether the calls of a reply that ended so may be made: it is whole, and nothing of it was withheld. */
export const permitsCalls = ({ finish }: Pick<ModelReply, 'finish'>): boolean =>
  finish === 'stop' || finish === 'tool_calls'

/** Capability of a model that only follows rules: where we have rules of our own, a call of it gains nothing. */
export const rulesOnly = 'rules-only'

/** The models of one caller. Errors are MasonError with a `model_*` code; an abort rejects with the signal's reason. */
export type Models = {
  call(request: ModelRequest, signal: AbortSignal): Promise<ModelReply>
  /** What its run has cost so far, in units of money (2.5, not cents); the highest of several currencies. Absent: unknown. */
  cost?(): Promise<number>
  /** Whether its run must end, because a budget that it spends is used up. Absent: there are no budgets. */
  isOverBudget?(): Promise<boolean>
  /** Whether a model with vision is set up for the caller. Absent: none is. */
  hasVision?(): boolean
  /** The indexes of documents, the most relevant to a query first; null: no model ranks, or it failed. Absent: none does. */
  rerank?(
    query: string,
    documents: readonly string[],
    signal: AbortSignal,
  ): Promise<{ order: number[]; usage: Usage } | null>
  /** The dialects of the models that may serve a role, that of the first to be tried first. Absent: all call natively. */
  dialects?(role: ModelRole, model?: string): readonly DialectName[]
  /** Whether a caller may name this model. */
  hasModel(model: string): boolean
  /** The smallest window among the models that may serve a role, so that a prompt fits each of them. Absent: unknown. */
  window?(role: ModelRole, model?: string): ModelWindow
  /** What serves, for people, and the capabilities that the registry has for it. */
  describe(): { name: string; capabilities: readonly string[]; base_url: string | null }
}
