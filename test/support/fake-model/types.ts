import type { Usage } from '../../../src/state/runtime-state.ts'

export type FakeToolCall = {
  id?: string
  name: string
  /** An object becomes JSON text; a string is sent as it is. */
  arguments: unknown
}

/** An answer with any status (200 too), body and headers. An object is sent as JSON. */
export type StatusFailure = { status: number; body?: unknown; headers?: Record<string, string> }

export type NamedFailure =
  /** Takes the request and never answers. */
  | 'stall_headers'
  /** Sends headers and no body. */
  | 'stall_body'
  | 'stall_after_first_chunk'
  /** Sends comments of the stream without end, and nothing else. */
  | 'drip'
  /** Destroys the socket after the first chunk. */
  | 'cut'
  /** The same, but each chunk carried the whole usage. */
  | 'cut_after_usage'
  /** Destroys the socket before the headers. */
  | 'reset'
  /** 200 with a page of HTML. */
  | 'garbage'
  /** One good event, then one that is not JSON. */
  | 'garbage_sse'
  | 'no_choices'
  | 'no_usage'
  /** Every chunk carries the usage so far. */
  | 'cumulative_usage'
  /** Every byte of the body is a chunk of its own, so that characters are split. */
  | 'split_utf8'
  | 'duplicate_tool_ids'
  | 'missing_tool_ids'
  /** The arguments of every tool call end in the middle of the JSON. */
  | 'bad_json_arguments'
  /** One event of 10 MB. */
  | 'huge_line'
  /** Text with NUL, lone surrogates, and a pair of surrogates split over two chunks. */
  | 'nul_and_surrogates'
  /** Ignores `stream: true`. */
  | 'plain_json'
  /** Closes in good order, but with neither finish_reason nor `[DONE]`. */
  | 'end_without_finish'
  /** Sends all, and leaves the connection open after `[DONE]`. */
  | 'never_closes'

export type FakeFailure = NamedFailure | StatusFailure

export type FakeReply = {
  text?: string
  reasoning?: string
  tool_calls?: readonly FakeToolCall[]
  /** Defaults to 10 + 5 tokens. */
  usage?: Usage
  /** Defaults to `tool_calls` or `stop`. */
  finish?: string
  delayMs?: number
  failure?: FakeFailure
  /** Waits for a release before it answers; a name lets it be released alone. */
  hold?: boolean | string
}

export type FakeMessage = { role: string; content: unknown; [field: string]: unknown }

/** A request as it came in. */
export type FakeRequest = {
  /** From `x-mason-role`; `none` without it. */
  role: string
  messages: FakeMessage[]
  tools: unknown[]
  /** The JSON Schema of `response_format`, if any. */
  schema: Record<string, unknown> | undefined
  body: Record<string, unknown>
  headers: Record<string, string>
  /** Counts the requests of this role, from 1. */
  nth: number
  /** Monotonic milliseconds. */
  atMs: number
  /** The last usage that left with the reply; null when none did. */
  reportedUsage: Usage | null
}

/** Decides each answer in process. Undefined stands for the built-in answer. */
export type FakeResponder = (request: FakeRequest) => FakeReply | undefined | Promise<FakeReply | undefined>

/** Answers by role, in order; the last one repeats. `*` stands for roles that are not named. */
export type FakeSteps = Record<string, readonly FakeReply[]>
export type FakeScript = FakeResponder | FakeSteps
