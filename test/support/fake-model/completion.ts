import type { Usage } from '../../../src/state/runtime-state.ts'
import type { FakeReply, FakeToolCall, NamedFailure } from './types.ts'

/** A reply in OpenAI's words, as chunks or as a whole. */

const defaultUsage: Usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const hugeBytes = 10 * 1024 * 1024
/** NUL, two lone surrogates, and an emoji that is split between two chunks below. */
const oddPieces = ['a\u0000b', '\ud800c', 'd\udc00', 'e\ud83d', '\ude00f']

type Call = { index: number; id?: string; name: string; text: string }

const argumentsOf = (call: FakeToolCall, failure: NamedFailure | undefined): string => {
  const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {})
  return failure === 'bad_json_arguments' ? `${text.slice(0, -1)},` : text
}

const idOf = (call: FakeToolCall, nth: number, index: number, failure: NamedFailure | undefined) => {
  if (failure === 'missing_tool_ids') return {}
  return { id: failure === 'duplicate_tool_ids' ? 'call_same' : (call.id ?? `call_${nth}_${index}`) }
}

/** Cuts a text into `count` pieces that are not empty, by UTF-16 unit. */
const cut = (text: string, count: number): string[] => {
  const size = Math.max(1, Math.ceil(text.length / count))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size))
}

const piecesOf = (reply: FakeReply): string[] => {
  if (reply.failure === 'nul_and_surrogates') return oddPieces
  if (reply.failure === 'huge_line') return ['x'.repeat(hugeBytes)]
  return cut(reply.text ?? '', 4)
}

/** Deltas of parallel calls, interleaved as OpenAI may send them: all names, then the arguments in turn. */
const callDeltas = (calls: readonly Call[]): unknown[] => {
  const opening = calls.map(({ index, name, ...call }) => ({
    index,
    ...(call.id === undefined ? {} : { id: call.id }),
    type: 'function',
    function: { name, arguments: '' },
  }))
  const pieces = calls.flatMap(({ index, text }) =>
    cut(text, 3).map((piece, n) => ({ n, delta: { index, function: { arguments: piece } } })),
  )
  const inTurn = pieces.toSorted((a, b) => a.n - b.n).map(({ delta }) => delta)
  return [...opening, ...inTurn].map((call) => ({ tool_calls: [call] }))
}

type Context = { model: string; nth: number; wantsUsage: boolean }

const prepare = (reply: FakeReply, { nth }: Context) => {
  const failure = typeof reply.failure === 'string' ? reply.failure : undefined
  const calls = (reply.tool_calls ?? []).map((call, index) => ({
    index,
    name: call.name,
    text: argumentsOf(call, failure),
    ...idOf(call, nth, index, failure),
  }))
  const finish = reply.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')
  return { failure, calls, finish, usage: reply.usage ?? defaultUsage }
}

const part = (usage: Usage, share: number): Usage => {
  const completion = Math.round(usage.completion_tokens * share)
  return {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: completion,
    total_tokens: usage.prompt_tokens + completion,
  }
}

/** The events of a streamed reply, without `[DONE]`. */
export const chunksOf = (reply: FakeReply, context: Context): Record<string, unknown>[] => {
  const { failure, calls, finish, usage } = prepare(reply, context)
  const base = {
    id: `chatcmpl-${context.nth}`,
    object: 'chat.completion.chunk',
    created: 1,
    model: context.model,
  }
  const chunk = (delta: unknown, finish_reason: string | null = null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }],
  })
  const withUsage = context.wantsUsage && failure !== 'no_usage'
  const end = withUsage ? [{ ...base, choices: [], usage }] : []
  if (failure === 'no_choices') return end.length > 0 ? end : [{ ...base, choices: [] }]
  const deltas = [
    { role: 'assistant', content: '' },
    ...cut(reply.reasoning ?? '', 2).map((piece) => ({ reasoning_content: piece })),
    ...piecesOf(reply).map((content) => ({ content })),
    ...callDeltas(calls),
  ]
  const said = deltas.map((delta) => chunk(delta))
  if (failure === 'end_without_finish') return said
  const all: Record<string, unknown>[] = [...said, chunk({}, finish)]
  if (failure === 'cut_after_usage') return all.map((one) => ({ ...one, usage }))
  if (failure !== 'cumulative_usage') return [...all, ...end]
  return all.map((one, n) => ({ ...one, usage: part(usage, (n + 1) / all.length) }))
}

/** The same reply as one body. */
export const completionOf = (reply: FakeReply, context: Context): Record<string, unknown> => {
  const { failure, calls, finish, usage } = prepare(reply, context)
  const text = piecesOf(reply).join('')
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(reply.reasoning === undefined ? {} : { reasoning_content: reply.reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ index: _, name, text: args, ...call }) => ({
            ...call,
            type: 'function',
            function: { name, arguments: args },
          })),
        }),
  }
  return {
    id: `chatcmpl-${context.nth}`,
    object: 'chat.completion',
    created: 1,
    model: context.model,
    choices: failure === 'no_choices' ? [] : [{ index: 0, message, finish_reason: finish }],
    ...(failure === 'no_usage' ? {} : { usage }),
  }
}
