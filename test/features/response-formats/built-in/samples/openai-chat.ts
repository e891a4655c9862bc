import { type DeclaredSample, type SampleFields, toSampleCall, toSampleUsage } from './declared-samples.ts'

const completion = (message: SampleFields, finish_reason: string, counts: SampleFields) => ({
  id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  object: 'chat.completion',
  created: 1741569952,
  model: 'gpt-4.1-2025-04-14',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, logprobs: null, finish_reason }],
  usage: counts,
  service_tier: 'default',
  system_fingerprint: 'fp_51db84afab',
})
const chunk = (
  delta: SampleFields | null,
  finish_reason: string | null = null,
  counts: SampleFields | null = null,
) => ({
  id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG',
  object: 'chat.completion.chunk',
  created: 1741570283,
  model: 'gpt-4.1-2025-04-14',
  choices: delta === null ? [] : [{ index: 0, delta, logprobs: null, finish_reason }],
  usage: counts,
})
/** A part of Mistral's content. */
const thinking = (text: string): SampleFields => ({
  type: 'thinking',
  thinking: [{ type: 'text', text }],
})
const counts = {
  prompt_tokens: 1117,
  completion_tokens: 46,
  total_tokens: 1163,
  prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 0, accepted_prediction_tokens: 0 },
}

/** What openaiChat must read. */
export const openaiChatSamples: DeclaredSample[] = [
  {
    raw: completion({ content: 'Hello! How can I help?', refusal: null, annotations: [] }, 'stop', counts),
    expected: {
      text: 'Hello! How can I help?',
      tool_calls: [],
      finish: 'stop',
      model: 'gpt-4.1-2025-04-14',
      usage: toSampleUsage(1117, 46, { cached_tokens: 1024, reasoning_tokens: 20 }),
    },
  },
  {
    raw: completion(
      {
        content: null,
        refusal: null,
        tool_calls: [
          toSampleCall({ id: 'call_abc123', name: 'get_current_weather' }, '{"location": "Boston, MA"}'),
        ],
      },
      'tool_calls',
      { prompt_tokens: 82, completion_tokens: 17, total_tokens: 99 },
    ),
    expected: {
      text: '',
      tool_calls: [{ id: 'call_abc123', name: 'get_current_weather', arguments: { location: 'Boston, MA' } }],
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
    events: [
      chunk({ role: 'assistant', content: '', refusal: null }),
      chunk({ content: 'Hel' }),
      chunk({ content: 'lo' }),
      chunk({}, 'stop'),
      chunk(null, null, counts),
    ],
    expected: {
      text: 'Hello',
      finish: 'stop',
      usage: { prompt_tokens: 1117, completion_tokens: 46, cached_tokens: 1024, reasoning_tokens: 20 },
    },
  },
  {
    events: [
      chunk({ role: 'assistant', content: null }),
      chunk({ tool_calls: [toSampleCall({ index: 0, id: 'call_1', name: 'get_weather' }, '')] }),
      chunk({ tool_calls: [toSampleCall({ index: 0 }, '{"city":')] }),
      chunk({ tool_calls: [toSampleCall({ index: 0 }, '"Paris"}')] }),
      chunk({
        tool_calls: [toSampleCall({ index: 1, id: 'call_2', name: 'get_weather' }, '{"city":"Rome"}')],
      }),
      chunk({}, 'tool_calls'),
    ],
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
  // xAI counts reasoning apart, Moonshot in the choice; searches of Perplexity and Groq are no calls
  {
    raw: {
      ...completion({ content: 'High at noon.', reasoning_content: 'Look at the table.' }, 'stop', {
        prompt_tokens: 30,
        completion_tokens: 4,
        total_tokens: 54,
        prompt_tokens_details: { cached_tokens: 6, text_tokens: 30 },
        completion_tokens_details: { reasoning_tokens: 20 },
      }),
      citations: ['https://tides.example.com'],
      search_results: [{ title: 'Tides', url: 'https://tides.example.com' }],
    },
    expected: {
      text: 'High at noon.',
      reasoning: 'Look at the table.',
      tool_calls: [],
      usage: toSampleUsage(30, 24, { cached_tokens: 6, reasoning_tokens: 20 }),
    },
  },
  {
    events: [
      chunk({
        role: 'assistant',
        content: '',
        executed_tools: [{ index: 0, type: 'search', arguments: '{}' }],
      }),
      chunk({ reasoning: 'Look at ' }),
      chunk({ reasoning: 'the table.' }),
      chunk({ content: 'High at noon.', part_of_tomorrow: 'Not for the reader.' }),
      {
        ...chunk(null),
        choices: [
          {
            index: 0,
            delta: {},
            finish_reason: 'stop',
            usage: { prompt_tokens: 30, completion_tokens: 24, total_tokens: 54, cached_tokens: 8 },
          },
        ],
      },
    ],
    expected: {
      text: 'High at noon.',
      reasoning: 'Look at the table.',
      tool_calls: [],
      usage: toSampleUsage(30, 24, { cached_tokens: 8, reasoning_tokens: 0 }),
    },
  },
  // Mistral's parts
  {
    raw: completion({ content: [thinking('Look at the table.'), { type: 'text', text: 'Noon.' }] }, 'stop', {
      prompt_tokens: 30,
      completion_tokens: 24,
      total_tokens: 54,
    }),
    expected: { text: 'Noon.', reasoning: 'Look at the table.' },
  },
  {
    events: [
      chunk({ role: 'assistant', content: [thinking('Look at ')] }),
      chunk({ content: [thinking('the table.')] }),
      chunk({
        content: [
          { type: 'text', text: 'Noon.' },
          { type: 'reference', reference_ids: [1] },
        ],
      }),
      chunk({ content: '' }, 'stop', { prompt_tokens: 30, completion_tokens: 24, total_tokens: 54 }),
    ],
    expected: { text: 'Noon.', reasoning: 'Look at the table.', usage: { completion_tokens: 24 } },
  },
  {
    raw: completion({ content: null, reasoning_content: 'Nothing more to say.' }, 'stop', counts),
    expected: { text: '', reasoning: 'Nothing more to say.', finish: 'stop' },
  },
  {
    events: [chunk({ role: 'assistant', content: '' }), chunk({ refusal: 'I cannot.' }), chunk({}, 'stop')],
    expected: { text: 'I cannot.', finish: 'stop' },
  },
  {
    raw: completion({ content: null }, 'content_filter', counts),
    expected: { text: '', finish: 'content_filter' },
  },
  {
    events: [chunk({ content: 'High' }), { error: { message: 'Overloaded', code: 'overloaded' } }],
    expected: { error: { code: 'overloaded' } },
  },
]
