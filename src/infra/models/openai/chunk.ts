import type { MeteredUsage } from '../ports.ts'
import {
  countOf,
  type Fields,
  fieldsAt,
  indexOf,
  isFields,
  listAt,
  NotOfProtocol,
  optionalFieldsAt,
  textOf,
} from './shape.ts'

export type ToolCallPiece = { index: number | null; id: string; name: string; arguments: string }

export type MessagePiece = { text: string; reasoning: string; toolCalls: readonly ToolCallPiece[] }

export type Chunk = {
  model: string | null
  usage: MeteredUsage | null
  /** Null: it brings no choice, only its usage. */
  choice: {
    /** Null: nothing of a message came. */
    message: MessagePiece | null
    /** It is the message itself in place of a delta: the server ignored `stream: true`. */
    isWhole: boolean
    finish: string | null
  } | null
}

/** Tokens as counted by the server, or null when it said nothing. */
const usageOf = (value: unknown): MeteredUsage | null => {
  if (!isFields(value)) return null
  const prompt = countOf(value.prompt_tokens)
  const completion = countOf(value.completion_tokens)
  const { prompt_tokens_details: ofPrompt, completion_tokens_details: ofCompletion } = value
  // the second is DeepSeek's name
  const cached = (isFields(ofPrompt) ? ofPrompt.cached_tokens : null) ?? value.prompt_cache_hit_tokens
  const reasoning = isFields(ofCompletion) ? ofCompletion.reasoning_tokens : null
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: countOf(value.total_tokens) || prompt + completion,
    cached_tokens: Math.min(countOf(cached), prompt),
    reasoning_tokens: Math.min(countOf(reasoning), completion),
  }
}

/** Text, or a list of parts as Mistral sends it, of which only the text parts count. */
const contentOf = (value: unknown): string => {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return ''
  return value.map((part: unknown) => (isFields(part) ? (textOf(part.text) ?? '') : '')).join('')
}

const argumentsAt = (value: unknown, place: string): string => {
  if (typeof value === 'string') return value
  if (value == null) return ''
  if (isFields(value)) return JSON.stringify(value)
  throw new NotOfProtocol(place, 'a text or an object')
}

const toolCallAt = (value: unknown, place: string): ToolCallPiece => {
  const call = fieldsAt(value, place)
  const called = optionalFieldsAt(call.function, `${place}/function`)
  return {
    index: indexOf(call.index),
    id: textOf(call.id) ?? '',
    name: textOf(called?.name) ?? '',
    arguments: argumentsAt(called?.arguments, `${place}/function/arguments`),
  }
}

const messageAt = (message: Fields, place: string): MessagePiece => ({
  text: contentOf(message.content) + (textOf(message.refusal) ?? ''),
  // the second is the name OpenRouter and newer vLLM use
  reasoning: textOf(message.reasoning_content) ?? textOf(message.reasoning) ?? '',
  toolCalls: listAt(message.tool_calls, `${place}/tool_calls`).map((call, at) =>
    toolCallAt(call, `${place}/tool_calls/${at}`),
  ),
})

/** One event of the stream, or a whole completion. Throws NotOfProtocol. */
export const readChunk = (value: unknown): Chunk => {
  const chunk = fieldsAt(value, '')
  const model = textOf(chunk.model)
  const usage = usageOf(chunk.usage)
  const [first] = listAt(chunk.choices, '/choices')
  if (first === undefined) return { model, usage, choice: null }
  const choice = fieldsAt(first, '/choices/0')
  const delta = optionalFieldsAt(choice.delta, '/choices/0/delta')
  const whole = delta === null ? optionalFieldsAt(choice.message, '/choices/0/message') : null
  const message = delta ?? whole
  return {
    model,
    // the second is where Moonshot reports
    usage: usage ?? usageOf(choice.usage),
    choice: {
      message:
        message === null
          ? null
          : messageAt(message, whole === null ? '/choices/0/delta' : '/choices/0/message'),
      isWhole: whole !== null,
      finish: textOf(choice.finish_reason),
    },
  }
}

export type Embeddings = {
  embeddings: number[][]
  model: string | null
  usage: MeteredUsage | null
}

const vectorAt = (value: unknown, place: string): number[] => {
  if (!Array.isArray(value) || value.length === 0) throw new NotOfProtocol(place, 'a list of numbers')
  if (!value.every(Number.isFinite)) throw new NotOfProtocol(place, 'a list of numbers')
  return value as number[]
}

/** The answer to a request for embeddings, in the order that their indexes say. Throws NotOfProtocol. */
export const readEmbeddings = (value: unknown): Embeddings => {
  const answer = fieldsAt(value, '')
  if (!Array.isArray(answer.data)) throw new NotOfProtocol('/data', 'a list')
  const found = answer.data.map((one: unknown, at) => {
    const { index, embedding } = fieldsAt(one, `/data/${at}`)
    return { index: indexOf(index) ?? 0, embedding: vectorAt(embedding, `/data/${at}/embedding`) }
  })
  return {
    embeddings: found.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding),
    model: textOf(answer.model),
    usage: usageOf(answer.usage),
  }
}
