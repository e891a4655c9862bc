import type { FormatInput } from '../../../state/registry/response-format.ts'
import { chunkPaths, completionPaths } from './openai-chat.ts'
import { zhipuChatRequest } from './requests/zhipu-chat.ts'
import { type Fields, sse } from './write.ts'

/** OpenAI's shape with `reasoning_content`, and finish words of its own. Source: Zhipu's API reference, GLM. */

const completion = (message: Fields, finish_reason: string) => ({
  id: '20250528163417f9a4f5e4e0c94b3b',
  request_id: '20250528163417f9a4f5e4e0c94b3b',
  created: 1748421257,
  model: 'glm-4.5',
  choices: [{ index: 0, finish_reason, message: { role: 'assistant', ...message } }],
  usage: counts,
})
const counts = {
  prompt_tokens: 170,
  completion_tokens: 96,
  total_tokens: 266,
  prompt_tokens_details: { cached_tokens: 128 },
}
const chunk = (delta: Fields, more: Fields = {}) => ({
  id: '20250528163417f9a4f5e4e0c94b3b',
  created: 1748421257,
  model: 'glm-4.5',
  choices: [{ index: 0, delta: { role: 'assistant', ...delta }, ...more }],
})

export const zhipuChat: FormatInput = {
  name: 'zhipu-chat',
  category: 'text',
  request: zhipuChatRequest,
  paths: completionPaths,
  stream: { format: 'sse', done: '[DONE]', paths: chunkPaths },
  samples: [
    {
      raw: completion({ content: 'Hello!', reasoning_content: 'A greeting.' }, 'stop'),
      expected: {
        text: 'Hello!',
        reasoning: 'A greeting.',
        finish: 'stop',
        usage: { prompt_tokens: 170, completion_tokens: 96, total_tokens: 266, cached_tokens: 128 },
      },
    },
    {
      raw: completion(
        {
          tool_calls: [
            {
              id: 'call_8231168139794583938',
              index: 0,
              type: 'function',
              function: { name: 'query_train_info', arguments: '{"departure": "Beijing"}' },
            },
          ],
        },
        'tool_calls',
      ),
      expected: {
        finish: 'tool_calls',
        tool_calls: [
          {
            id: 'call_8231168139794583938',
            name: 'query_train_info',
            arguments: { departure: 'Beijing' },
          },
        ],
      },
    },
    { raw: completion({ content: '' }, 'sensitive'), expected: { finish: 'content_filter' } },
    {
      raw: sse(
        [
          chunk({ reasoning_content: 'A greet' }),
          chunk({ reasoning_content: 'ing.' }),
          chunk({ content: 'Hel' }),
          chunk({ content: 'lo!' }),
          { ...chunk({ content: '' }, { finish_reason: 'stop' }), usage: counts },
        ],
        { done: '[DONE]' },
      ),
      expected: {
        text: 'Hello!',
        reasoning: 'A greeting.',
        finish: 'stop',
        usage: { prompt_tokens: 170, completion_tokens: 96, cached_tokens: 128 },
      },
    },
    {
      raw: { error: { code: '1305', message: 'The API has triggered rate limiting.' } },
      expected: { error: { code: '1305' } },
    },
    {
      raw: completion({ content: 'The' }, 'network_error'),
      expected: { error: { code: 'network_error' } },
    },
  ],
}
