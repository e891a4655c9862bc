import { type DeclaredSample, type SampleFields, toSampleCall, toSampleUsage } from './declared-samples.ts'

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

/** What qwenDashscope must read. */
export const qwenDashscopeSamples: DeclaredSample[] = [
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
    raw: answer(call('call_240d6341de4c484384849d', 'get_weather', '{"location": "Beijing"}'), 'tool_calls'),
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
]
