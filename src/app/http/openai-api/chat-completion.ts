import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { GatewayResponse } from './model-gateway.ts'

/** The head of a new completion by this model. */
export const createCompletionHead = (model: string): CompletionHead => ({
  // cheaper than random bytes: node generates many UUIDs with one call of the system
  id: `chatcmpl-${randomUUID().replaceAll('-', '')}`,
  created: Math.floor(Date.now() / 1000),
  model,
})

const headSchema = z.strictObject({
  id: z.string().describe('The id of the completion'),
  created: z.int().describe('When it was made, in Unix seconds'),
  model: z.string().describe('The alias of the model that answered'),
})
/** The fields that every object of one completion has. */
export type CompletionHead = z.infer<typeof headSchema>

const toolCallSchema = z.strictObject({
  id: z.string().describe('The id of the call'),
  type: z.literal('function').describe('The only type'),
  function: z
    .strictObject({
      name: z.string().describe('The name of the tool'),
      arguments: z.string().describe('JSON text, as the model wrote it'),
    })
    .describe('What is called'),
})
const count = (description: string) => z.int().describe(description)
const usageSchema = z
  .strictObject({
    prompt_tokens: count('Tokens of the request'),
    completion_tokens: count('Tokens of the response, reasoning included'),
    total_tokens: count('Both together'),
    prompt_tokens_details: z
      .strictObject({ cached_tokens: count('Tokens that the vendor had in its cache') })
      .describe('Of the tokens of the request'),
    completion_tokens_details: z
      .strictObject({ reasoning_tokens: count('Tokens of reasoning') })
      .describe('Of the tokens of the response'),
  })
  .describe('Tokens of all requests to vendors that it took')
const finishSchema = z
  .enum(['stop', 'length', 'tool_calls', 'content_filter', 'unknown'])
  .describe('Why the model stopped; `unknown` for a reason of the vendor that has no name here')
const indexSchema = z.int().describe('The place in the list')
const logprobsSchema = z.null().describe('Never given')
const reasoningSchema = z.string().optional().describe('The reasoning, where the vendor shows it')

/** https://platform.openai.com/docs/api-reference/chat/object */
export const chatCompletionSchema = headSchema.extend({
  object: z.literal('chat.completion').describe('The kind of this object'),
  choices: z
    .array(
      z.strictObject({
        index: indexSchema,
        message: z
          .strictObject({
            role: z.literal('assistant').describe('Who speaks'),
            content: z.string().nullable().describe('The text; null where there are only tool calls'),
            refusal: z.null().describe('Never given'),
            reasoning_content: reasoningSchema,
            tool_calls: z.array(toolCallSchema).optional().describe('The tools that the model calls'),
          })
          .describe('What the model said'),
        logprobs: logprobsSchema,
        finish_reason: finishSchema,
      }),
    )
    .describe('One choice'),
  usage: usageSchema,
})

/** https://platform.openai.com/docs/api-reference/chat-streaming */
export const chatChunkSchema = headSchema.extend({
  object: z.literal('chat.completion.chunk').describe('The kind of this object'),
  choices: z
    .array(
      z.strictObject({
        index: indexSchema,
        delta: z
          .strictObject({
            role: z.literal('assistant').optional().describe('Who speaks; in the first chunk'),
            content: z.string().nullable().optional().describe('The next part of the text'),
            reasoning_content: reasoningSchema,
            tool_calls: z
              .array(toolCallSchema.extend({ index: indexSchema }))
              .optional()
              .describe('A tool that the model calls, whole'),
          })
          .describe('What is added to the message'),
        logprobs: logprobsSchema,
        finish_reason: finishSchema.nullable(),
      }),
    )
    .describe('One choice, or none in the chunk of the usage'),
  usage: usageSchema.nullable().optional(),
})

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
export const toChatCompletion = (
  head: CompletionHead,
  response: GatewayResponse,
): z.infer<typeof chatCompletionSchema> => {
  const { text, reasoning, finish } = response.result
  const calls = formatToolCalls(response)
  const message = {
    role: 'assistant' as const,
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

type Delta = z.infer<typeof chatChunkSchema>['choices'][number]['delta']

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
