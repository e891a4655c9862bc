import { z } from 'zod'
import { anthropicMessages } from '../../../../src/features/response-formats/built-in/anthropic-messages.ts'
import { geminiGenerateContent } from '../../../../src/features/response-formats/built-in/gemini-generate-content.ts'
import { ollamaChat } from '../../../../src/features/response-formats/built-in/ollama-chat.ts'
import {
  deepseekChat,
  openaiChat,
  zhipuChat,
} from '../../../../src/features/response-formats/built-in/openai-chat.ts'
import { openaiResponses } from '../../../../src/features/response-formats/built-in/openai-responses.ts'
import { qwenDashscope } from '../../../../src/features/response-formats/built-in/qwen-dashscope.ts'
import type { FormatInput } from '../../../../src/models/schemas/response-format.ts'
import type { VendorAnswer, VendorRequest } from '../../../support/http-vendor.ts'

/**
 * Vendors that take nothing but their own shape and answer in it: the first time with the words "One moment." and a
 * call of get_weather for Oslo, the second time, shown the result, with "It is 7 degrees.".
 */
export type ChatVendor = {
  name: string
  format: FormatInput
  /** Where its key is expected. */
  keyHeader: string
  /** Throws where a request is not in the vendor's shape. `results`: how many results of tools it must hold. */
  check(request: VendorRequest, streamed: boolean, results: number): void
  answer(streamed: boolean, second: boolean): VendorAnswer
}

const sse = (...events: unknown[]): string =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')
const typed = (...events: { type: string }[]): string =>
  events.map((event) => `event: ${event.type}\n${sse(event)}`).join('')
const lines = (...events: unknown[]): string => events.map((event) => `${JSON.stringify(event)}\n`).join('')

const parameters = z.strictObject({
  type: z.literal('object'),
  properties: z.strictObject({ city: z.strictObject({ type: z.literal('string') }) }),
  required: z.tuple([z.literal('city')]),
  additionalProperties: z.literal(false),
})
const described = { name: z.literal('get_weather'), description: z.literal('The weather of a city') }
const args = '{"city":"Oslo"}'
const count = (found: number, expected: number): void => {
  if (found !== expected) throw new Error(`${found} results of tools, not ${expected}`)
}
const at = (request: VendorRequest, path: string): void => {
  if (request.path !== path) throw new Error(`asked at ${request.path}, not ${path}`)
}

// OpenAI's chat shape and those that follow it
const chatTool = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({ ...described, parameters }),
})
const chatCall = z.strictObject({
  id: z.literal('call_1'),
  type: z.literal('function'),
  function: z.strictObject({ name: z.literal('get_weather'), arguments: z.literal(args) }),
})
const chatMessage = z.union([
  z.strictObject({ role: z.enum(['system', 'user']), content: z.string().min(1) }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.string(),
    reasoning_content: z.string().optional(),
    tool_calls: z.array(chatCall).min(1),
  }),
  z.strictObject({ role: z.literal('tool'), content: z.string(), tool_call_id: z.literal('call_1') }),
])
const chatBody = z.strictObject({
  model: z.literal('upstream-1'),
  messages: z.array(chatMessage).min(2),
  tools: z.array(chatTool).length(1),
  temperature: z.literal(0.5),
  max_tokens: z.literal(100),
  stream: z.boolean(),
})
const chatUsage = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 }
const chatWords = (second: boolean) => (second ? 'It is 7 degrees.' : 'One moment.')
const chatCalls = [
  { index: 0, id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: args } },
]
const chatAnswer = (streamed: boolean, second: boolean): VendorAnswer => {
  const finish_reason = second ? 'stop' : 'tool_calls'
  if (!streamed) {
    const message = {
      role: 'assistant',
      content: chatWords(second),
      ...(second ? {} : { tool_calls: chatCalls }),
    }
    return { body: { model: 'served-1', choices: [{ index: 0, message, finish_reason }], usage: chatUsage } }
  }
  const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
    object: 'chat.completion.chunk',
    model: 'served-1',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  })
  const words = chatWords(second)
  const pieces = second
    ? []
    : [
        chunk({ tool_calls: [{ ...chatCalls[0], function: { name: 'get_weather', arguments: '' } }] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: args.slice(0, 5) } }] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: args.slice(5) } }] }),
      ]
  const events = [
    chunk({ role: 'assistant', content: words.slice(0, 4) }),
    chunk({ content: words.slice(4) }),
    ...pieces,
    chunk({}, finish_reason, { usage: chatUsage }),
    '[DONE]',
  ]
  return { headers: { 'content-type': 'text/event-stream' }, pieces: [sse(...events)] }
}
const chatVendor = (
  name: string,
  format: FormatInput,
  more: z.ZodRawShape,
  path = '/chat/completions',
): ChatVendor => ({
  name,
  format,
  keyHeader: 'authorization',
  check: (request, streamed, results) => {
    at(request, path)
    const body = z.strictObject({ ...chatBody.shape, ...more }).parse(request.body)
    if (body.stream !== streamed) throw new Error('stream')
    count((body.messages as { role: string }[]).filter(({ role }) => role === 'tool').length, results)
  },
  answer: chatAnswer,
})
const streamOptions = { stream_options: z.strictObject({ include_usage: z.literal(true) }).optional() }

// DashScope
const qwenBody = z.strictObject({
  model: z.literal('upstream-1'),
  input: z.strictObject({
    messages: z.array(
      z.union([
        ...chatMessage.options.slice(0, 2),
        z.strictObject({
          role: z.literal('tool'),
          content: z.string(),
          tool_call_id: z.literal('call_1'),
          name: z.literal('get_weather'),
        }),
      ]),
    ),
  }),
  parameters: z.strictObject({
    result_format: z.literal('message'),
    incremental_output: z.literal(true).optional(),
    tools: z.array(chatTool).length(1),
    temperature: z.literal(0.5),
    max_tokens: z.literal(100),
  }),
})
const qwen: ChatVendor = {
  name: 'qwen-dashscope',
  format: qwenDashscope,
  keyHeader: 'authorization',
  check: (request, streamed, results) => {
    at(request, '/services/aigc/text-generation/generation')
    const body = qwenBody.parse(request.body)
    if ((request.headers['x-dashscope-sse'] === 'enable') !== streamed) throw new Error('X-DashScope-SSE')
    if ((body.parameters.incremental_output === true) !== streamed) throw new Error('incremental_output')
    count((body.input.messages as { role: string }[]).filter(({ role }) => role === 'tool').length, results)
  },
  answer: (streamed, second) => {
    const part = (message: object, finish_reason: string) => ({
      output: { choices: [{ finish_reason, message: { role: 'assistant', content: '', ...message } }] },
      usage: { input_tokens: 20, output_tokens: 5, total_tokens: 25 },
      request_id: 'r',
    })
    const words = chatWords(second)
    const last = second ? {} : { tool_calls: chatCalls }
    const finish = second ? 'stop' : 'tool_calls'
    if (!streamed) return { body: part({ content: words, ...last }, finish) }
    const events = [
      part({ content: words.slice(0, 4) }, 'null'),
      part({ content: words.slice(4) }, 'null'),
      part(last, finish),
    ]
    const framed = events.map(
      (event, index) => `id:${index + 1}\nevent:result\n:HTTP_STATUS/200\ndata:${JSON.stringify(event)}\n\n`,
    )
    return { headers: { 'content-type': 'text/event-stream' }, pieces: framed }
  },
}

// Anthropic
const textBlock = z.strictObject({ type: z.literal('text'), text: z.string().min(1) })
const anthropicBody = z.strictObject({
  model: z.literal('upstream-1'),
  max_tokens: z.literal(100),
  system: z.literal('You plan.'),
  messages: z
    .array(
      z.union([
        z.strictObject({
          role: z.literal('user'),
          content: z
            .array(
              z.union([
                textBlock,
                z.strictObject({
                  type: z.literal('tool_result'),
                  tool_use_id: z.literal('call_1'),
                  content: z.string(),
                }),
              ]),
            )
            .min(1),
        }),
        z.strictObject({
          role: z.literal('assistant'),
          content: z
            .array(
              z.union([
                textBlock,
                z.strictObject({
                  type: z.literal('tool_use'),
                  id: z.literal('call_1'),
                  name: z.literal('get_weather'),
                  input: z.strictObject({ city: z.literal('Oslo') }),
                }),
              ]),
            )
            .min(1),
        }),
      ]),
    )
    .min(1),
  tools: z.array(z.strictObject({ ...described, input_schema: parameters })).length(1),
  temperature: z.literal(0.5),
  stream: z.boolean(),
})
const anthropic: ChatVendor = {
  name: 'anthropic-messages',
  format: anthropicMessages,
  keyHeader: 'x-api-key',
  check: (request, streamed, results) => {
    at(request, '/messages')
    if (request.headers['anthropic-version'] !== '2023-06-01') throw new Error('anthropic-version')
    const { messages, stream } = anthropicBody.parse(request.body)
    if (stream !== streamed) throw new Error('stream')
    const wrong = messages.findIndex(({ role }, index) => role !== (index % 2 === 0 ? 'user' : 'assistant'))
    if (wrong !== -1) throw new Error('roles must alternate')
    count(
      messages.flatMap(({ content }) => content.filter(({ type }) => type === 'tool_result')).length,
      results,
    )
  },
  answer: (streamed, second) => {
    const words = chatWords(second)
    const stop_reason = second ? 'end_turn' : 'tool_use'
    const use = { type: 'tool_use', id: 'call_1', name: 'get_weather', input: { city: 'Oslo' } }
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'served-1',
      stop_sequence: null,
    }
    if (!streamed) {
      const content = [{ type: 'text', text: words }, ...(second ? [] : [use])]
      return { body: { ...message, content, stop_reason, usage: { input_tokens: 20, output_tokens: 5 } } }
    }
    const block = (index: number, content_block: object, ...deltas: object[]) => [
      { type: 'content_block_start', index, content_block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]
    const piece = (partial_json: string) => ({ type: 'input_json_delta', partial_json })
    const events = [
      {
        type: 'message_start',
        message: {
          ...message,
          content: [],
          stop_reason: null,
          usage: { input_tokens: 20, output_tokens: 1 },
        },
      },
      { type: 'ping' },
      ...block(
        0,
        { type: 'text', text: '' },
        { type: 'text_delta', text: words.slice(0, 4) },
        { type: 'text_delta', text: words.slice(4) },
      ),
      ...(second
        ? []
        : block(1, { ...use, input: {} }, piece(''), piece(args.slice(0, 6)), piece(args.slice(6)))),
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ]
    return { headers: { 'content-type': 'text/event-stream' }, pieces: [typed(...events)] }
  },
}

// Gemini
const textPart = z.strictObject({ text: z.string().min(1) })
const geminiBody = z.strictObject({
  systemInstruction: z.strictObject({ parts: z.tuple([textPart]) }),
  contents: z
    .array(
      z.union([
        z.strictObject({
          role: z.literal('user'),
          parts: z
            .array(
              z.union([
                textPart,
                z.strictObject({
                  functionResponse: z.strictObject({
                    name: z.literal('get_weather'),
                    response: z.strictObject({ result: z.string() }),
                  }),
                }),
              ]),
            )
            .min(1),
        }),
        z.strictObject({
          role: z.literal('model'),
          parts: z
            .array(
              z.union([
                textPart,
                z.strictObject({
                  functionCall: z.strictObject({
                    name: z.literal('get_weather'),
                    args: z.strictObject({ city: z.literal('Oslo') }),
                  }),
                  thoughtSignature: z.string(),
                }),
              ]),
            )
            .min(1),
        }),
      ]),
    )
    .min(1),
  tools: z.tuple([
    z.strictObject({
      functionDeclarations: z
        .array(z.strictObject({ ...described, parametersJsonSchema: parameters }))
        .length(1),
    }),
  ]),
  generationConfig: z.strictObject({ temperature: z.literal(0.5), maxOutputTokens: z.literal(100) }),
})
const gemini: ChatVendor = {
  name: 'gemini-generate-content',
  format: geminiGenerateContent,
  keyHeader: 'x-goog-api-key',
  check: (request, streamed, results) => {
    at(request, `/models/upstream-1:${streamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`)
    const { contents } = geminiBody.parse(request.body)
    const found = contents.flatMap(({ parts }) => parts.filter((part) => 'functionResponse' in part))
    count(found.length, results)
  },
  answer: (streamed, second) => {
    const words = chatWords(second)
    const usageMetadata = { promptTokenCount: 20, candidatesTokenCount: 5, totalTokenCount: 25 }
    const part = (parts: object[], more: object = {}) => ({
      candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }],
      usageMetadata,
      modelVersion: 'served-1',
    })
    const call = { functionCall: { name: 'get_weather', args: { city: 'Oslo' } } }
    const calls = second ? [] : [call]
    if (!streamed) return { body: part([{ text: words }, ...calls], { finishReason: 'STOP' }) }
    const events = [
      part([{ text: words.slice(0, 4) }]),
      part([{ text: words.slice(4) }]),
      part(calls, { finishReason: 'STOP' }),
    ]
    return {
      headers: { 'content-type': 'text/event-stream' },
      pieces: [sse(...events).replaceAll('\n', '\r\n')],
    }
  },
}

// Ollama
const ollamaBody = z.strictObject({
  model: z.literal('upstream-1'),
  messages: z.array(
    z.union([
      z.strictObject({ role: z.enum(['system', 'user']), content: z.string().min(1) }),
      z.strictObject({
        role: z.literal('assistant'),
        content: z.string(),
        tool_calls: z.array(
          z.strictObject({
            function: z.strictObject({
              name: z.literal('get_weather'),
              arguments: z.strictObject({ city: z.literal('Oslo') }),
            }),
          }),
        ),
      }),
      z.strictObject({ role: z.literal('tool'), content: z.string(), tool_name: z.literal('get_weather') }),
    ]),
  ),
  tools: z.array(chatTool).length(1),
  options: z.strictObject({ temperature: z.literal(0.5), num_predict: z.literal(100) }),
  stream: z.boolean(),
})
const ollama: ChatVendor = {
  name: 'ollama-chat',
  format: ollamaChat,
  keyHeader: 'authorization',
  check: (request, streamed, results) => {
    at(request, '/api/chat')
    const { messages, stream } = ollamaBody.parse(request.body)
    if (stream !== streamed) throw new Error('stream')
    count(messages.filter(({ role }) => role === 'tool').length, results)
  },
  answer: (streamed, second) => {
    const words = chatWords(second)
    const part = (message: object, more: object = { done: false }) => ({
      model: 'served-1',
      message: { role: 'assistant', content: '', ...message },
      ...more,
    })
    const calls = { tool_calls: [{ function: { name: 'get_weather', arguments: { city: 'Oslo' } } }] }
    const end = { done: true, done_reason: 'stop', prompt_eval_count: 20, eval_count: 5 }
    if (!streamed) return { body: part({ content: words, ...(second ? {} : calls) }, end) }
    const events = [
      part({ content: words.slice(0, 4) }),
      part({ content: words.slice(4) }),
      ...(second ? [] : [part(calls)]),
      part({}, end),
    ]
    return { headers: { 'content-type': 'application/x-ndjson' }, pieces: [lines(...events)] }
  },
}

// OpenAI responses
const responsesBody = z.strictObject({
  model: z.literal('upstream-1'),
  instructions: z.literal('You plan.'),
  input: z
    .array(
      z.union([
        z.strictObject({ role: z.enum(['user', 'assistant']), content: z.string().min(1) }),
        z.strictObject({
          type: z.literal('function_call'),
          call_id: z.literal('call_1'),
          name: z.literal('get_weather'),
          arguments: z.literal(args),
        }),
        z.strictObject({
          type: z.literal('function_call_output'),
          call_id: z.literal('call_1'),
          output: z.string(),
        }),
      ]),
    )
    .min(1),
  tools: z
    .array(
      z.strictObject({ type: z.literal('function'), ...described, parameters, strict: z.literal(false) }),
    )
    .length(1),
  temperature: z.literal(0.5),
  max_output_tokens: z.literal(100),
  store: z.literal(false),
  stream: z.boolean(),
})
const responses: ChatVendor = {
  name: 'openai-responses',
  format: openaiResponses,
  keyHeader: 'authorization',
  check: (request, streamed, results) => {
    at(request, '/responses')
    const { input, stream } = responsesBody.parse(request.body)
    if (stream !== streamed) throw new Error('stream')
    count(input.filter((item) => 'type' in item && item.type === 'function_call_output').length, results)
  },
  answer: (streamed, second) => {
    const words = chatWords(second)
    const call = {
      type: 'function_call',
      id: 'fc_1',
      call_id: 'call_1',
      name: 'get_weather',
      arguments: args,
      status: 'completed',
    }
    const message = {
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: words, annotations: [] }],
    }
    const response = {
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      error: null,
      incomplete_details: null,
      model: 'served-1',
      output: [message, ...(second ? [] : [call])],
      usage: { input_tokens: 20, output_tokens: 5, total_tokens: 25 },
    }
    if (!streamed) return { body: response }
    const begun = { ...response, status: 'in_progress', output: [], usage: null }
    const text = (delta: string) => ({
      type: 'response.output_text.delta',
      output_index: 0,
      content_index: 0,
      delta,
    })
    const events = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
      { type: 'response.output_item.added', output_index: 0, item: { ...message, content: [] } },
      text(words.slice(0, 4)),
      text(words.slice(4)),
      { type: 'response.output_text.done', output_index: 0, content_index: 0, text: words },
      { type: 'response.output_item.done', output_index: 0, item: message },
      ...(second
        ? []
        : [
            { type: 'response.output_item.added', output_index: 1, item: { ...call, arguments: '' } },
            { type: 'response.function_call_arguments.delta', output_index: 1, item_id: 'fc_1', delta: args },
            {
              type: 'response.function_call_arguments.done',
              output_index: 1,
              item_id: 'fc_1',
              arguments: args,
            },
            { type: 'response.output_item.done', output_index: 1, item: call },
          ]),
      { type: 'response.completed', response },
    ]
    return { headers: { 'content-type': 'text/event-stream' }, pieces: [typed(...events)] }
  },
}

export const chatVendors: readonly ChatVendor[] = [
  chatVendor('openai-chat', openaiChat, streamOptions),
  chatVendor('deepseek-chat', deepseekChat, streamOptions),
  chatVendor('zhipu-chat', zhipuChat, {}),
  qwen,
  anthropic,
  gemini,
  ollama,
  responses,
]
