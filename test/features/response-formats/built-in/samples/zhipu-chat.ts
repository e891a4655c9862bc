import { type DeclaredSample, type SampleFields, toSampleCall } from './declared-samples.ts'

const completion = (message: SampleFields, finish_reason: string) => ({
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
const chunk = (delta: SampleFields, more: SampleFields = {}) => ({
  id: '20250528163417f9a4f5e4e0c94b3b',
  created: 1748421257,
  model: 'glm-4.5',
  choices: [{ index: 0, delta: { role: 'assistant', ...delta }, ...more }],
})

/** What zhipuChat must read. */
export const zhipuChatSamples: DeclaredSample[] = [
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
          toSampleCall(
            { index: 0, id: 'call_8231168139794583938', name: 'query_train_info' },
            '{"departure": "Beijing"}',
          ),
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
    events: [
      chunk({ reasoning_content: 'A greet' }),
      chunk({ reasoning_content: 'ing.' }),
      chunk({ content: 'Hel' }),
      chunk({ content: 'lo!' }),
      { ...chunk({ content: '' }, { finish_reason: 'stop' }), usage: counts },
    ],
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
  // searches of the vendor are no calls of ours
  {
    raw: {
      ...completion({ content: 'High at noon.', role_of_tomorrow: 'none' }, 'stop'),
      web_search: [{ title: 'Tides', link: 'https://tides.example.com', content: 'Noon.', refer: 'ref_1' }],
    },
    expected: { text: 'High at noon.', tool_calls: [], finish: 'stop' },
  },
  {
    events: [
      chunk({
        tool_calls: [{ index: 0, ...toSampleCall({ id: 'call_t', name: 'get_tide' }, '{"port":') }],
      }),
      chunk({ tool_calls: [toSampleCall({ index: 0 }, '"Wick"}')] }),
      { ...chunk({ content: '' }, { finish_reason: 'tool_calls' }), usage: counts },
    ],
    expected: {
      text: '',
      tool_calls: [{ id: 'call_t', name: 'get_tide', arguments: '{"port":"Wick"}' }],
      finish: 'tool_calls',
    },
  },
  {
    events: [chunk({ content: 'High' }), chunk({ content: '' }, { finish_reason: 'sensitive' })],
    expected: { text: 'High', finish: 'content_filter' },
  },
  {
    events: [chunk({ reasoning_content: 'No words.' }), chunk({ content: '' }, { finish_reason: 'stop' })],
    expected: { text: '', reasoning: 'No words.', finish: 'stop' },
  },
  {
    events: [chunk({ content: 'High' }), { error: { code: '1302', message: 'Too many requests.' } }],
    expected: { error: { code: '1302' } },
  },
]
