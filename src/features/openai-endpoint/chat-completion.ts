import { randomUUID } from 'node:crypto'
import type { GatewayResponse } from './model-gateway.ts'

/** The head of a new completion by this model. */
export const createCompletionHead = (model: string): CompletionHead => ({
  // cheaper than random bytes: node generates many UUIDs with one call of the system
  id: `chatcmpl-${randomUUID().replaceAll('-', '')}`,
  created: Math.floor(Date.now() / 1000),
  model,
})

/** The fields that every object of one completion has. `model` is the alias of the model that answered. */
export type CompletionHead = { id: string; created: number; model: string }

/** Tokens of all requests that it took, with OpenAI's names. */
const formatUsage = ({ usage }: GatewayResponse) => ({
  prompt_tokens: usage.prompt_tokens,
  completion_tokens: usage.completion_tokens,
  total_tokens: usage.total_tokens,
  prompt_tokens_details: { cached_tokens: usage.cached_tokens },
  completion_tokens_details: { reasoning_tokens: usage.reasoning_tokens },
})

const formatToolCalls = ({ result }: GatewayResponse) =>
  result.tool_calls.map(({ id, name, arguments: text }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: text },
  }))

/** A whole completion. */
export const toChatCompletion = (head: CompletionHead, response: GatewayResponse) => {
  const { text, reasoning, finish } = response.result
  const calls = formatToolCalls(response)
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    usage: formatUsage(response),
  }
}

type Delta = {
  role?: 'assistant'
  content?: string | null
  reasoning_content?: string
  tool_calls?: object[]
}

/** Formats the chunks of one streamed completion as server-sent events. */
export const createChunkFormat = ({ id, created, model }: CompletionHead, includeUsage: boolean) => {
  const start = JSON.stringify({ id, object: 'chat.completion.chunk', created, model }).slice(0, -1)
  const noUsage = includeUsage ? ',"usage":null' : ''
  const chunk = (delta: Delta, finish: string | null): string =>
    `data: ${start},"choices":[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${JSON.stringify(finish)}}]${noUsage}}\n\n`
  return {
    /** A part of the completion. */
    delta: (delta: Delta): string => chunk(delta, null),
    /** The last chunks: tool calls, finish reason, usage where the request includes it, [DONE]. */
    end: (response: GatewayResponse): string =>
      [
        ...formatToolCalls(response).map((call, index) => chunk({ tool_calls: [{ index, ...call }] }, null)),
        chunk({}, response.result.finish),
        ...(includeUsage
          ? [`data: ${start},"choices":[],"usage":${JSON.stringify(formatUsage(response))}}\n\n`]
          : []),
        'data: [DONE]\n\n',
      ].join(''),
  }
}

/** See `createChunkFormat`. */
export type ChunkFormat = ReturnType<typeof createChunkFormat>
