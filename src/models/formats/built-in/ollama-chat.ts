import type { FormatPaths } from '../../schemas/response-format.ts'
import { copyFields, defineFormat, type SampleFields } from './format-declaration.ts'
import { chatToolsTemplate } from './openai-chat.ts'

/** Source: Ollama's API reference, "Generate a chat message". Lines of a stream have the shape of whole responses. */

const paths: FormatPaths = {
  text: 'message.content',
  reasoning: 'message.thinking',
  tool_calls: 'message.tool_calls[].{id: id, name: function.name, arguments: function.arguments}',
  finish: "done && (done_reason || 'stop')",
  model: 'model',
  error: 'error',
  usage: { prompt_tokens: 'prompt_eval_count', completion_tokens: 'eval_count' },
}

const answer = (message: SampleFields, more: SampleFields) => ({
  model: 'qwen3:8b',
  created_at: '2025-07-11T09:00:00.123456Z',
  message: { role: 'assistant', ...message },
  done: false,
  ...more,
})
const last = {
  done: true,
  done_reason: 'stop',
  total_duration: 4883583458,
  load_duration: 1334875,
  prompt_eval_count: 26,
  prompt_eval_duration: 342546000,
  eval_count: 282,
  eval_duration: 4535599000,
}

const messages =
  "{{messages[].compact({role: role, content: content || '', " +
  "images: parts[?type == 'image'] ? parts[?type == 'image'].base64 : `null`, " +
  'tool_calls: tool_calls[].{function: {name: name, arguments: from_json(arguments)}}, ' +
  "tool_name: role == 'tool' ? name : `null`})}}"

/** Ollama's own chat protocol. */
export const ollamaChat = defineFormat({
  name: 'ollama-chat',
  /** Under http://localhost:11434. Source: Ollama's API reference, "Generate a chat message". */
  post: '/api/chat',
  body: {
    ...copyFields('model', 'stream'),
    messages,
    tools: chatToolsTemplate,
    format: '{{schema}}',
    think: '{{parameters.think}}',
    options: {
      ...copyFields('temperature', 'top_p', 'top_k', 'seed'),
      num_predict: '{{max_tokens}}',
      stop: '{{stop ? to_array(stop) : `null`}}',
    },
  },
  paths,
  stream: { format: 'ndjson', paths },
  samples: [
    {
      raw: answer({ content: 'Hello! How are you?' }, last),
      expected: {
        text: 'Hello! How are you?',
        finish: 'stop',
        model: 'qwen3:8b',
        usage: { prompt_tokens: 26, completion_tokens: 282, total_tokens: 308 },
      },
    },
    {
      raw: answer(
        {
          content: '',
          thinking: 'The tool knows.',
          tool_calls: [
            { function: { name: 'get_weather', arguments: { city: 'Tokyo' } } },
            { id: 'call_7', function: { index: 1, name: 'get_time', arguments: {} } },
          ],
        },
        last,
      ),
      expected: {
        text: '',
        reasoning: 'The tool knows.',
        finish: 'tool_calls',
        tool_calls: [
          { name: 'get_weather', arguments: '{"city":"Tokyo"}' },
          { id: 'call_7', name: 'get_time', arguments: '{}' },
        ],
      },
    },
    {
      events: [
        answer({ content: '', thinking: 'Sky.' }, {}),
        answer({ content: 'Ray' }, {}),
        answer({ content: 'leigh.' }, {}),
        answer({ content: '', tool_calls: [{ function: { name: 'note', arguments: { a: 1 } } }] }, {}),
        answer({ content: '', tool_calls: [{ function: { name: 'note', arguments: { a: 2 } } }] }, {}),
        answer({ content: '' }, { ...last, done_reason: 'length' }),
      ],
      expected: {
        text: 'Rayleigh.',
        reasoning: 'Sky.',
        tool_calls: [
          { name: 'note', arguments: '{"a":1}' },
          { name: 'note', arguments: '{"a":2}' },
        ],
        finish: 'length',
        usage: { prompt_tokens: 26, completion_tokens: 282 },
      },
    },
    { raw: { error: 'model "qwen3:8b" not found' }, expected: { error: 'model "qwen3:8b" not found' } },
    {
      events: [answer({ content: 'Ray' }, {}), { error: 'an error was encountered while running the model' }],
      expected: { error: 'an error was encountered while running the model' },
    },
    {
      raw: answer({ content: '', thinking: 'No words.', part_of_tomorrow: 'none' }, last),
      expected: { text: '', reasoning: 'No words.', tool_calls: [], finish: 'stop' },
    },
  ],
})
