import type { FormatPaths } from '../../schemas/response-format.ts'
import {
  copyFields,
  defineFormat,
  inputOutputUsage,
  type SampleFields,
  toSampleCall,
  toSampleUsage,
} from './format-declaration.ts'
import { chatToolsTemplate, jsonSchemaTemplate } from './openai-chat.ts'

/**
 * Alibaba's own protocol, with `result_format: message` and `incremental_output: true`: events have the shape of whole
 * responses, and `finish_reason` is the text "null" until the last. Source: DashScope API reference of Model Studio.
 */

const paths: FormatPaths = {
  text: 'output.text || output.choices[0].message.content',
  reasoning: 'output.choices[0].message.reasoning_content',
  tool_calls:
    'output.choices[0].message.tool_calls[].' +
    '{index: index, id: id, name: function.name, arguments: function.arguments}',
  finish: 'output.finish_reason || output.choices[0].finish_reason',
  error: 'code && {code: code, message: message}',
  usage: {
    ...inputOutputUsage,
    cached_tokens: 'usage.prompt_tokens_details.cached_tokens',
    reasoning_tokens: 'usage.output_tokens_details.reasoning_tokens',
  },
}

const answer = (message: SampleFields, finish_reason: string, usage: SampleFields = counts) => ({
  output: { choices: [{ finish_reason, message: { role: 'assistant', ...message } }] },
  usage,
  request_id: '902fee3b-f7f0-9a8c-96a1-6b4ea25af114',
})
const counts = {
  total_tokens: 330,
  input_tokens: 300,
  output_tokens: 30,
  prompt_tokens_details: { cached_tokens: 256 },
  output_tokens_details: { reasoning_tokens: 12 },
}
const call = (id: string, name: string | undefined, text: string) => ({
  role: 'assistant',
  content: '',
  tool_calls: [toSampleCall({ index: 0, id, name }, text)],
})

const calls = "tool_calls[].{id: id, type: 'function', function: {name: name, arguments: arguments}}"

const messageWith = (content: string): string =>
  `compact({role: role, content: ${content}, tool_calls: ${calls}, tool_call_id: tool_call_id, ` +
  "name: role == 'tool' ? name : `null`})"
const shows = "(messages[].parts[] | [?type == 'image'])"
const parts = "map(&(type == 'text' ? {text: text} : {image: url}), parts)"

/** Qwen by the DashScope protocol. */
export const qwenDashscope = defineFormat({
  name: 'qwen-dashscope',
  /**
   * Under https://dashscope.aliyuncs.com/api/v1 (or -intl). Requests with images have another path, where every content is a
   * list. Source: DashScope API reference of Model Studio, text and multimodal generation.
   */
  post: `/services/aigc/{{${shows} ? 'multimodal' : 'text'}}-generation/generation`,
  headers: { 'x-dashscope-sse': "{{stream ? 'enable' : `null`}}" },
  body: {
    ...copyFields('model'),
    input: {
      messages: `{{${shows} ? messages[].${messageWith(parts)} : messages[].${messageWith("content || ''")}}}`,
    },
    parameters: {
      ...copyFields('temperature', 'top_p', 'top_k', 'max_tokens', 'stop', 'seed', 'presence_penalty'),
      result_format: 'message',
      incremental_output: '{{stream ? stream : `null`}}',
      tools: chatToolsTemplate,
      tool_choice: "{{tools && (tool_choice == 'required' ? 'auto' : tool_choice)}}",
      parallel_tool_calls: '{{tools && parallel_tool_calls}}',
      response_format: jsonSchemaTemplate,
      enable_thinking: '{{parameters.enable_thinking}}',
    },
  },
  paths,
  stream: { format: 'sse', paths },
  samples: [
    {
      raw: answer({ content: 'I am Qwen.', reasoning_content: 'Who am I?' }, 'stop'),
      expected: {
        text: 'I am Qwen.',
        reasoning: 'Who am I?',
        finish: 'stop',
        usage: toSampleUsage(300, 30, { cached_tokens: 256, reasoning_tokens: 12 }),
      },
    },
    {
      raw: answer(
        call('call_240d6341de4c484384849d', 'get_weather', '{"location": "Beijing"}'),
        'tool_calls',
      ),
      expected: {
        text: '',
        finish: 'tool_calls',
        tool_calls: [
          { id: 'call_240d6341de4c484384849d', name: 'get_weather', arguments: { location: 'Beijing' } },
        ],
      },
    },
    {
      raw: answer({ content: [{ text: 'A dog on a beach.' }] }, 'stop', {
        input_tokens: 1271,
        output_tokens: 9,
        image_tokens: 1247,
      }),
      expected: { text: 'A dog on a beach.', usage: { prompt_tokens: 1271, total_tokens: 1280 } },
    },
    {
      events: [
        answer({ content: '', reasoning_content: 'Who?' }, 'null', { input_tokens: 9, output_tokens: 2 }),
        answer({ content: 'I am' }, 'null', { input_tokens: 9, output_tokens: 4, total_tokens: 13 }),
        answer({ content: ' Qwen.' }, 'null', { input_tokens: 9, output_tokens: 7, total_tokens: 16 }),
        answer({ content: '' }, 'stop', { input_tokens: 9, output_tokens: 7, total_tokens: 16 }),
      ],
      expected: {
        text: 'I am Qwen.',
        reasoning: 'Who?',
        finish: 'stop',
        usage: { prompt_tokens: 9, completion_tokens: 7, total_tokens: 16 },
      },
    },
    {
      events: [
        answer(call('call_58a5', 'get_weather', ''), 'null'),
        answer(call('', undefined, '{"location": '), 'null'),
        answer(call('', undefined, '"Beijing"}'), 'null'),
        answer({ content: '' }, 'tool_calls'),
      ],
      expected: {
        finish: 'tool_calls',
        tool_calls: [{ id: 'call_58a5', name: 'get_weather', arguments: '{"location": "Beijing"}' }],
      },
    },
    {
      raw: {
        code: 'DataInspectionFailed',
        message: 'Output data may contain inappropriate content.',
        request_id: '902fee3b-f7f0-9a8c-96a1-6b4ea25af114',
      },
      expected: { error: { code: 'DataInspectionFailed' } },
    },
    // searches of the vendor are no calls of ours
    {
      raw: {
        output: {
          choices: [
            {
              finish_reason: 'stop',
              message: { role: 'assistant', content: 'High at noon.', part_of_tomorrow: 'none' },
            },
          ],
          search_info: { search_results: [{ index: 1, title: 'Tides', url: 'https://tides.example.com' }] },
        },
        usage: counts,
      },
      expected: { text: 'High at noon.', tool_calls: [], finish: 'stop' },
    },
    {
      events: [
        answer({ content: '', reasoning_content: 'No words.' }, 'null'),
        answer({ content: '', reasoning_content: '' }, 'length'),
      ],
      expected: { text: '', reasoning: 'No words.', finish: 'length', usage: { reasoning_tokens: 12 } },
    },
    {
      events: [
        answer({ content: 'High' }, 'null'),
        { code: 'DataInspectionFailed', message: 'Output data may contain inappropriate content.' },
      ],
      expected: { error: { code: 'DataInspectionFailed' } },
    },
  ],
})
