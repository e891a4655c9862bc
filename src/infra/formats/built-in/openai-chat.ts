import type { FormatInput, Paths } from '../../../state/registry/response-format.ts'
import { openaiChatRequest } from './requests/openai-chat.ts'
import { type Fields, sse } from './write.ts'

/** Chat completions as OpenAI and most others send them. Source: OpenAI's API reference, "Chat Completions". */

const usage: Paths['usage'] = {
  prompt_tokens: 'usage.prompt_tokens',
  completion_tokens: 'usage.completion_tokens',
  total_tokens: 'usage.total_tokens',
  cached_tokens: 'usage.prompt_tokens_details.cached_tokens',
  reasoning_tokens: 'usage.completion_tokens_details.reasoning_tokens',
}

/** Shared by those who send the same with more in it. */
export const completionPaths = {
  text: 'choices[0].message.refusal || choices[0].message.content',
  reasoning: 'choices[0].message.reasoning_content || choices[0].message.reasoning',
  tool_calls: 'choices[0].message.tool_calls[].{id: id, name: function.name, arguments: function.arguments}',
  finish: 'choices[0].finish_reason',
  model: 'model',
  error: 'error',
  usage,
} satisfies Paths
export const chunkPaths = {
  ...completionPaths,
  text: 'choices[0].delta.refusal || choices[0].delta.content',
  reasoning: 'choices[0].delta.reasoning_content || choices[0].delta.reasoning',
  tool_calls:
    'choices[0].delta.tool_calls[].{index: index, id: id, name: function.name, arguments: function.arguments}',
} satisfies Paths

const completion = (message: Fields, finish_reason: string, counts: Fields) => ({
  id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  object: 'chat.completion',
  created: 1741569952,
  model: 'gpt-4.1-2025-04-14',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, logprobs: null, finish_reason }],
  usage: counts,
  service_tier: 'default',
  system_fingerprint: 'fp_51db84afab',
})
const chunk = (delta: Fields | null, finish_reason: string | null = null, counts: Fields | null = null) => ({
  id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG',
  object: 'chat.completion.chunk',
  created: 1741570283,
  model: 'gpt-4.1-2025-04-14',
  choices: delta === null ? [] : [{ index: 0, delta, logprobs: null, finish_reason }],
  usage: counts,
})
const counts = {
  prompt_tokens: 1117,
  completion_tokens: 46,
  total_tokens: 1163,
  prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 0, accepted_prediction_tokens: 0 },
}
const call = (index: number, id: string | undefined, name: string | undefined, text: string) => ({
  index,
  ...(id === undefined ? {} : { id, type: 'function' }),
  function: { ...(name === undefined ? {} : { name }), arguments: text },
})

export const openaiChat: FormatInput = {
  name: 'openai-chat',
  category: 'text',
  request: openaiChatRequest,
  paths: completionPaths,
  stream: { format: 'sse', done: '[DONE]', paths: chunkPaths },
  samples: [
    {
      raw: completion({ content: 'Hello! How can I help?', refusal: null, annotations: [] }, 'stop', counts),
      expected: {
        text: 'Hello! How can I help?',
        tool_calls: [],
        finish: 'stop',
        model: 'gpt-4.1-2025-04-14',
        usage: {
          prompt_tokens: 1117,
          completion_tokens: 46,
          total_tokens: 1163,
          cached_tokens: 1024,
          reasoning_tokens: 20,
        },
      },
    },
    {
      raw: completion(
        {
          content: null,
          refusal: null,
          tool_calls: [
            {
              id: 'call_abc123',
              type: 'function',
              function: { name: 'get_current_weather', arguments: '{"location": "Boston, MA"}' },
            },
          ],
        },
        'tool_calls',
        { prompt_tokens: 82, completion_tokens: 17, total_tokens: 99 },
      ),
      expected: {
        text: '',
        tool_calls: [
          { id: 'call_abc123', name: 'get_current_weather', arguments: { location: 'Boston, MA' } },
        ],
        finish: 'tool_calls',
        usage: { prompt_tokens: 82, completion_tokens: 17, total_tokens: 99, cached_tokens: 0 },
      },
    },
    {
      raw: completion({ content: null, refusal: 'I can’t help with that.' }, 'stop', counts),
      expected: { text: 'I can’t help with that.', finish: 'stop' },
    },
    {
      raw: completion({ content: 'The first of a great many', refusal: null }, 'length', counts),
      expected: { finish: 'length' },
    },
    {
      raw: sse(
        [
          chunk({ role: 'assistant', content: '', refusal: null }),
          chunk({ content: 'Hel' }),
          chunk({ content: 'lo' }),
          chunk({}, 'stop'),
          chunk(null, null, counts),
        ],
        { done: '[DONE]' },
      ),
      expected: {
        text: 'Hello',
        finish: 'stop',
        usage: { prompt_tokens: 1117, completion_tokens: 46, cached_tokens: 1024, reasoning_tokens: 20 },
      },
    },
    {
      raw: sse(
        [
          chunk({ role: 'assistant', content: null }),
          chunk({ tool_calls: [call(0, 'call_1', 'get_weather', '')] }),
          chunk({ tool_calls: [call(0, undefined, undefined, '{"city":')] }),
          chunk({ tool_calls: [call(0, undefined, undefined, '"Paris"}')] }),
          chunk({ tool_calls: [call(1, 'call_2', 'get_weather', '{"city":"Rome"}')] }),
          chunk({}, 'tool_calls'),
        ],
        { done: '[DONE]' },
      ),
      expected: {
        text: '',
        finish: 'tool_calls',
        tool_calls: [
          { id: 'call_1', name: 'get_weather', arguments: '{"city":"Paris"}' },
          { id: 'call_2', name: 'get_weather', arguments: '{"city":"Rome"}' },
        ],
        usage: null,
      },
    },
    {
      raw: {
        error: {
          message: 'The server had an error while processing your request.',
          type: 'server_error',
          param: null,
          code: null,
        },
      },
      expected: { error: { type: 'server_error' } },
    },
  ],
}
