import type { DeclaredSample, SampleFields } from './declared-samples.ts'

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

/** What ollamaChat must read. */
export const ollamaChatSamples: DeclaredSample[] = [
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
]
