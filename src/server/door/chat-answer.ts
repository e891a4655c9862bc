import { randomUUID } from 'node:crypto'
import type { Answered } from './service.ts'

/** What every object of one answer says of itself. */
export type Head = { id: string; created: number; model: string }

export const newHead = (model: string): Head => ({
  // node keeps a store of them: random bytes cost a call to the system each
  id: `chatcmpl-${randomUUID().replaceAll('-', '')}`,
  created: Math.floor(Date.now() / 1000),
  model,
})

/** Tokens of all requests that it took, in OpenAI's words. */
const usageOf = ({ usage }: Answered) => ({
  prompt_tokens: usage.prompt_tokens,
  completion_tokens: usage.completion_tokens,
  total_tokens: usage.total_tokens,
  prompt_tokens_details: { cached_tokens: usage.cached_tokens },
  completion_tokens_details: { reasoning_tokens: usage.reasoning_tokens },
})

const toolCallsOf = ({ result }: Answered) =>
  result.tool_calls.map(({ id, name, arguments: text }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: text },
  }))

/** A whole answer: https://platform.openai.com/docs/api-reference/chat/object */
export const completionOf = (head: Head, answered: Answered) => {
  const { text, reasoning, finish } = answered.result
  const calls = toolCallsOf(answered)
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
    usage: usageOf(answered),
  }
}

export type Chunks = {
  /** A piece of the answer, as a frame of the stream. */
  delta(delta: Record<string, unknown>): string
  /** What is left to say once all is known: tool calls, how it ended, usage where that was asked for, [DONE]. */
  rest(answered: Answered): string
}

/** Frames of a streamed answer: https://platform.openai.com/docs/api-reference/chat-streaming */
export const createChunks = ({ id, created, model }: Head, includeUsage: boolean): Chunks => {
  const start = JSON.stringify({ id, object: 'chat.completion.chunk', created, model }).slice(0, -1)
  const noUsage = includeUsage ? ',"usage":null' : ''
  const chunk = (delta: Record<string, unknown>, finish: string | null): string =>
    `data: ${start},"choices":[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${JSON.stringify(finish)}}]${noUsage}}\n\n`
  return {
    delta: (delta) => chunk(delta, null),
    rest: (answered) =>
      [
        ...toolCallsOf(answered).map((call, index) => chunk({ tool_calls: [{ index, ...call }] }, null)),
        chunk({}, answered.result.finish),
        ...(includeUsage
          ? [`data: ${start},"choices":[],"usage":${JSON.stringify(usageOf(answered))}}\n\n`]
          : []),
        'data: [DONE]\n\n',
      ].join(''),
  }
}
