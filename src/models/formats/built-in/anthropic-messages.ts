import { copyFields, defineFormat, type SampleFields } from './format-declaration.ts'

/**
 * Source: Anthropic's API reference, "Messages" and "Streaming messages". Its input_tokens exclude tokens read from or
 * written to the cache.
 */

const promptTokens = (at: string): string =>
  `${at}.input_tokens && sum([${at}.input_tokens, ${at}.cache_creation_input_tokens || \`0\`, ` +
  `${at}.cache_read_input_tokens || \`0\`])`

const message = (content: SampleFields[], stop_reason: string | null, usage: SampleFields) => ({
  id: 'msg_013Zva2CMHLNnXjNJJKqJ2EF',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content,
  stop_reason,
  stop_sequence: null,
  usage,
})
const counts = {
  input_tokens: 21,
  cache_creation_input_tokens: 100,
  cache_read_input_tokens: 2000,
  output_tokens: 85,
}
const begin = (index: number, content_block: SampleFields) => ({
  type: 'content_block_start',
  index,
  content_block,
})
const toolUse = (id: string, input: SampleFields) => ({ type: 'tool_use', id, name: 'get_weather', input })
const delta = (index: number, chunk: SampleFields) => ({ type: 'content_block_delta', index, delta: chunk })
const end = (index: number) => ({ type: 'content_block_stop', index })

const parts =
  "map(&(type == 'text' ? {type: 'text', text: text} : {type: 'image', source: base64 ? " +
  "{type: 'base64', media_type: mime_type, data: base64} : {type: 'url', url: url}}), parts)"
const calls = "map(&{type: 'tool_use', id: id, name: name, input: from_json(arguments)}, tool_calls || `[]`)"
const result = "[{type: 'tool_result', tool_use_id: tool_call_id, content: content}]"

/** Turns must alternate, so all results of one turn are one message; no content may be empty. */
const messages =
  "{{join_neighbours(messages[?role != 'system'].{role: role == 'assistant' ? 'assistant' : 'user', " +
  `content: role == 'tool' ? ${result} : [${parts}, ${calls}][]} | [?content], 'role', 'content')}}`

const choice =
  "tool_choice == 'required' ? {type: 'any'} : tool_choice.function.name ? " +
  "{type: 'tool', name: tool_choice.function.name} : {type: tool_choice}"

/** Anthropic's Messages. */
export const anthropicMessages = defineFormat({
  name: 'anthropic-messages',
  /** Under https://api.anthropic.com/v1. Source: Anthropic's API reference, "Create a Message", and "Structured outputs". */
  post: '/messages',
  headers: { 'x-api-key': '{{key}}', 'anthropic-version': '2023-06-01' },
  body: {
    ...copyFields('model', 'system', 'temperature', 'top_p', 'top_k', 'stream'),
    max_tokens: '{{max_tokens || max_output || `4096`}}',
    messages,
    tools: '{{tools[].{name: name, description: description, input_schema: parameters}}}',
    tool_choice: `{{tools && tool_choice ? (${choice}) : \`null\`}}`,
    output_config: "{{schema ? {format: {type: 'json_schema', schema: schema}} : `null`}}",
    thinking: '{{parameters.thinking}}',
    stop_sequences: '{{stop ? to_array(stop) : `null`}}',
  },
  paths: {
    text: "content[?type=='text'].text",
    reasoning: "content[?type=='thinking'].thinking",
    tool_calls: "content[?type=='tool_use'].{id: id, name: name, arguments: input}",
    finish: 'stop_reason',
    model: 'model',
    error: "type=='error' && error",
    usage: {
      prompt_tokens: promptTokens('usage'),
      completion_tokens: 'usage.output_tokens',
      cached_tokens: 'usage.cache_read_input_tokens',
    },
  },
  stream: {
    format: 'sse',
    paths: {
      text: 'delta.text || content_block.text',
      reasoning: 'delta.thinking || content_block.thinking',
      tool_calls:
        "content_block.type=='tool_use' && {index: index, id: content_block.id, name: content_block.name} || " +
        'delta.partial_json && {index: index, arguments: delta.partial_json}',
      finish: 'delta.stop_reason',
      model: 'message.model',
      error: "type=='error' && error",
      usage: {
        prompt_tokens: `${promptTokens('usage')} || ${promptTokens('message.usage')}`,
        completion_tokens: 'usage.output_tokens || message.usage.output_tokens',
        cached_tokens: 'usage.cache_read_input_tokens || message.usage.cache_read_input_tokens',
      },
    },
  },
  samples: [
    {
      raw: message([{ type: 'text', text: 'Hi! My name is Claude.' }], 'end_turn', {
        input_tokens: 2095,
        output_tokens: 503,
      }),
      expected: {
        text: 'Hi! My name is Claude.',
        finish: 'stop',
        model: 'claude-sonnet-4-5-20250929',
        usage: { prompt_tokens: 2095, completion_tokens: 503, total_tokens: 2598, cached_tokens: 0 },
      },
    },
    {
      raw: message(
        [
          { type: 'thinking', thinking: 'The user asks for the weather.', signature: 'EqoBCkgIARABGAIiQL2' },
          { type: 'text', text: 'I will look.' },
          toolUse('toolu_01D7FLrfh4GYq7yT1ULFeyMV', { city: 'Paris' }),
        ],
        'tool_use',
        counts,
      ),
      expected: {
        text: 'I will look.',
        reasoning: 'The user asks for the weather.',
        tool_calls: [
          { id: 'toolu_01D7FLrfh4GYq7yT1ULFeyMV', name: 'get_weather', arguments: '{"city":"Paris"}' },
        ],
        finish: 'tool_calls',
        usage: { prompt_tokens: 2121, completion_tokens: 85, total_tokens: 2206, cached_tokens: 2000 },
      },
    },
    {
      raw: message([{ type: 'text', text: 'Once upon a' }], 'max_tokens', counts),
      expected: { finish: 'length' },
    },
    { raw: message([], 'refusal', counts), expected: { text: '', finish: 'content_filter' } },
    {
      events: [
        {
          type: 'message_start',
          message: message([], null, { ...counts, output_tokens: 1 }),
        },
        begin(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, { type: 'thinking_delta', thinking: 'Look it up.' }),
        delta(0, { type: 'signature_delta', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' }),
        end(0),
        begin(1, { type: 'text', text: '' }),
        { type: 'ping' },
        delta(1, { type: 'text_delta', text: 'Let me ' }),
        delta(1, { type: 'text_delta', text: 'check.' }),
        end(1),
        begin(2, toolUse('toolu_01T1x1fJ34qAmk2tNTrN7Up6', {})),
        delta(2, { type: 'input_json_delta', partial_json: '' }),
        delta(2, { type: 'input_json_delta', partial_json: '{"city":' }),
        delta(2, { type: 'input_json_delta', partial_json: ' "Paris"}' }),
        end(2),
        {
          type: 'message_delta',
          delta: { stop_reason: 'tool_use', stop_sequence: null },
          usage: { output_tokens: 89 },
        },
        { type: 'message_stop' },
      ],
      expected: {
        text: 'Let me check.',
        reasoning: 'Look it up.',
        tool_calls: [
          { id: 'toolu_01T1x1fJ34qAmk2tNTrN7Up6', name: 'get_weather', arguments: '{"city": "Paris"}' },
        ],
        finish: 'tool_calls',
        usage: { prompt_tokens: 2121, completion_tokens: 89, total_tokens: 2210, cached_tokens: 2000 },
      },
    },
    {
      events: [{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
      expected: { error: { type: 'overloaded_error' } },
    },
  ],
})
