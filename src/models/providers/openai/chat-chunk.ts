import { isJsonObject } from '../../../infra/lib/json-text.ts'
import { readIndex, type ToolCallChunk, toArgumentsText } from '../../chat/reply-chunks.ts'
import {
  mergeTokenCounts,
  noTokenCounts,
  readTokenCounts,
  type TokenCounts,
  toMeteredUsage,
} from '../../chat/token-counts.ts'
import { ProtocolError } from '../../transport/provider-errors.ts'
import { readErrorValue } from '../../transport/upstream-error.ts'

/** `place`: the JSON pointer of the first difference. */
const outOfProtocol = (place: string, expected: string): ProtocolError =>
  new ProtocolError(`what is no answer of the protocol: ${place || '/'} is not ${expected}`)

type JsonFields = Record<string, unknown>

/** Requires an object. Throws ProtocolError. */
const readFields = (value: unknown, place: string): JsonFields => {
  if (isJsonObject(value)) return value
  throw outOfProtocol(place, 'an object')
}

/** Null also where it is missing. */
const readOptionalFields = (value: unknown, place: string): JsonFields | null =>
  value == null ? null : readFields(value, place)

/** Empty also where it is missing. */
const readList = (value: unknown, place: string): readonly unknown[] => {
  if (value == null) return []
  if (Array.isArray(value)) return value
  throw outOfProtocol(place, 'a list')
}

/** A text, else null. */
const readOptionalText = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** The message of a chunk. */
export type MessageChunk = { text: string; reasoning: string; toolCalls: readonly ToolCallChunk[] }

/** The server's counts of tokens. */
const readCounts = (value: unknown): TokenCounts => {
  if (!isJsonObject(value)) return noTokenCounts
  const { prompt_tokens_details: ofPrompt, completion_tokens_details: ofCompletion } = value
  const counts: Record<string, unknown> = {
    prompt_tokens: value.input_tokens,
    completion_tokens: value.output_tokens,
    ...value,
    // the other names are DeepSeek's and Moonshot's
    cached_tokens:
      (isJsonObject(ofPrompt) ? ofPrompt.cached_tokens : null) ??
      value.prompt_cache_hit_tokens ??
      value.cached_tokens,
    reasoning_tokens: isJsonObject(ofCompletion) ? ofCompletion.reasoning_tokens : null,
  }
  return readTokenCounts((name) => counts[name])
}

/** Text, or a list of parts as Mistral sends it; only its text parts count. Some servers parse the JSON that was asked for. */
const readContent = (value: unknown): string => {
  if (!Array.isArray(value))
    return isJsonObject(value) ? JSON.stringify(value) : (readOptionalText(value) ?? '')
  return value.map((part) => readOptionalText(isJsonObject(part) ? part.text : part) ?? '').join('')
}

/** The reasoning among the parts of Mistral's content. */
const readThinking = (value: unknown): string =>
  Array.isArray(value)
    ? value.map((part) => readContent(isJsonObject(part) ? part.thinking : null)).join('')
    : ''

const readToolCall = (value: unknown, place: string): ToolCallChunk => {
  const call = readFields(value, place)
  const fn = readOptionalFields(call.function, `${place}/function`)
  return {
    index: readIndex(call.index),
    id: readOptionalText(call.id) ?? '',
    name: readOptionalText(fn?.name) ?? '',
    arguments: toArgumentsText(fn?.arguments),
  }
}

const readMessage = (message: JsonFields, place: string): MessageChunk => ({
  text: readContent(message.content) + (readOptionalText(message.refusal) ?? ''),
  // the second is the name OpenRouter and newer vLLM use
  reasoning:
    readOptionalText(message.reasoning_content) ||
    (readOptionalText(message.reasoning) ?? readThinking(message.content)),
  toolCalls: [message.tool_calls ?? (message.function_call && { function: message.function_call }) ?? []]
    .flat()
    .map((call, at) => readToolCall(call ?? {}, `${place}/tool_calls/${at}`)),
})

const isEmptyMessage = ({ text, reasoning, toolCalls }: MessageChunk): boolean =>
  text === '' && reasoning === '' && toolCalls.length === 0

/**
 * The message of a choice. Whole: a server that ignores `stream: true` sends it, and some send it after the deltas; beside a
 * delta that has something it is what the deltas have made so far.
 */
const readChoiceMessage = (choice: JsonFields): { message: MessageChunk | null; isWhole: boolean } => {
  const read = (name: 'delta' | 'message', value = choice[name]): MessageChunk | null => {
    const fields = readOptionalFields(value, `/choices/0/${name}`)
    return fields && readMessage(fields, `/choices/0/${name}`)
  }
  // the text is that of servers that know completions alone
  const delta = read('delta', choice.delta ?? (choice.text == null ? null : { content: choice.text }))
  if (choice.message == null || (delta !== null && !isEmptyMessage(delta)))
    return { message: delta, isWhole: false }
  return { message: read('message'), isWhole: true }
}

/**
 * Reads an event of the stream, or a whole completion. Throws ProtocolError. `choice` null: the chunk has only usage;
 * `isWhole`: it has the whole message instead of a delta; `error`: what the server says of a reply that failed.
 */
export const readChatChunk = (value: unknown) => {
  const chunk = readFields(value, '')
  const model = readOptionalText(chunk.model)
  const counts = readCounts(chunk.usage)
  const [first] = readList(chunk.choices, '/choices')
  if (first === undefined) return { model, counts, choice: null }
  const choice = readFields(first, '/choices/0')
  const { message, isWhole } = readChoiceMessage(choice)
  return {
    model,
    // the second is where Moonshot reports
    counts: mergeTokenCounts(readCounts(choice.usage), counts),
    choice: {
      message,
      isWhole,
      finish: choice.finish_reason || (isWhole && chunk.object !== 'chat.completion.chunk' ? 'stop' : null),
      error: readErrorValue(choice.error),
    },
  }
}

const readVector = (value: unknown, place: string): number[] => {
  if (Array.isArray(value) && value.length > 0 && value.every(Number.isFinite)) return value
  throw outOfProtocol(place, 'a list of numbers')
}

/** Reads the answer to a request for embeddings, ordered by their indexes. Throws ProtocolError. */
export const readEmbeddings = (value: unknown) => {
  const answer = readFields(value, '')
  if (!Array.isArray(answer.data)) throw outOfProtocol('/data', 'a list')
  const vectors = answer.data.map((one: unknown, at) => {
    const { index, embedding } = readFields(one, `/data/${at}`)
    return { index: readIndex(index) ?? 0, embedding: readVector(embedding, `/data/${at}/embedding`) }
  })
  return {
    embeddings: vectors.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding),
    model: readOptionalText(answer.model),
    usage: toMeteredUsage(readCounts(answer.usage)),
  }
}
