import { type DeclaredSample, type SampleFields, toSampleCall, toSampleUsage } from './declared-samples.ts'

const completion = (message: SampleFields, finish_reason: string) => ({
  id: '930c60df-bf64-41c9-a88e-3ec75f81e00e',
  object: 'chat.completion',
  created: 1705651092,
  model: 'deepseek-reasoner',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, logprobs: null, finish_reason }],
  usage: counts,
  system_fingerprint: 'fp_a49d71b8a1',
})
const counts = {
  prompt_tokens: 80,
  completion_tokens: 210,
  total_tokens: 290,
  prompt_cache_hit_tokens: 64,
  prompt_cache_miss_tokens: 16,
  completion_tokens_details: { reasoning_tokens: 180 },
}
const chunk = (delta: SampleFields, finish_reason: string | null = null, more: SampleFields = {}) => ({
  id: '1f633d8bfc032625086f14113c411638',
  object: 'chat.completion.chunk',
  created: 1718345013,
  model: 'deepseek-reasoner',
  system_fingerprint: 'fp_a49d71b8a1',
  choices: [{ index: 0, delta, finish_reason, logprobs: null }],
  ...more,
})

/** What deepseekChat must read. */
export const deepseekChatSamples: DeclaredSample[] = [
  {
    raw: completion({ content: '9.8 is greater.', reasoning_content: 'Compare 0.80 and 0.11.' }, 'stop'),
    expected: {
      text: '9.8 is greater.',
      reasoning: 'Compare 0.80 and 0.11.',
      finish: 'stop',
      usage: toSampleUsage(80, 210, { cached_tokens: 64, reasoning_tokens: 180 }),
    },
  },
  {
    raw: completion(
      {
        content: '',
        tool_calls: [
          toSampleCall({ index: 0, id: 'call_0_a8dd8bc2', name: 'get_weather' }, '{"city": "Hangzhou"}'),
        ],
      },
      'tool_calls',
    ),
    expected: {
      finish: 'tool_calls',
      tool_calls: [{ id: 'call_0_a8dd8bc2', name: 'get_weather', arguments: { city: 'Hangzhou' } }],
    },
  },
  {
    events: [
      chunk({ role: 'assistant', content: null, reasoning_content: '' }),
      chunk({ content: null, reasoning_content: 'Compare' }),
      chunk({ content: null, reasoning_content: ' them.' }),
      chunk({ content: '9', reasoning_content: null }),
      chunk({ content: '.8', reasoning_content: null }),
      chunk({ content: '', reasoning_content: null }, 'stop', { usage: counts }),
    ],
    expected: {
      text: '9.8',
      reasoning: 'Compare them.',
      finish: 'stop',
      usage: { prompt_tokens: 80, completion_tokens: 210, cached_tokens: 64, reasoning_tokens: 180 },
    },
  },
  {
    raw: completion({ content: 'The answer' }, 'insufficient_system_resource'),
    expected: { error: { code: 'insufficient_system_resource' } },
  },
  {
    raw: {
      error: { message: 'Insufficient Balance', type: 'unknown_error', code: 'invalid_request_error' },
    },
    expected: { error: { message: 'Insufficient Balance' } },
  },
  {
    events: [
      chunk({ role: 'assistant', content: null, reasoning_content: 'Ask for the tide.' }),
      chunk({ tool_calls: [toSampleCall({ index: 0, id: 'call_00_tide', name: 'get_tide' }, '')] }),
      chunk({ tool_calls: [toSampleCall({ index: 0 }, '{"port":')] }),
      chunk({ tool_calls: [toSampleCall({ index: 0 }, '"Wick"}')] }),
      chunk({ content: '' }, 'tool_calls', { usage: counts }),
    ],
    expected: {
      text: '',
      reasoning: 'Ask for the tide.',
      tool_calls: [{ id: 'call_00_tide', name: 'get_tide', arguments: '{"port":"Wick"}' }],
      finish: 'tool_calls',
    },
  },
  {
    events: [
      chunk({ role: 'assistant', content: null, reasoning_content: 'Still thinking' }),
      chunk({ content: null }, 'length', { usage: counts }),
    ],
    expected: { text: '', reasoning: 'Still thinking', finish: 'length' },
  },
  {
    raw: completion({ content: '', part_of_tomorrow: { text: 'Not for the reader.' } }, 'content_filter'),
    expected: { text: '', finish: 'content_filter' },
  },
  {
    events: [chunk({ content: 'High' }), { error: { message: 'Server overloaded', code: 'overloaded' } }],
    expected: { error: { code: 'overloaded' } },
  },
]
