import { type DeclaredSample, type SampleFields, toSampleUsage } from './declared-samples.ts'

const answer = (parts: SampleFields[] | null, finishReason: string | null, usageMetadata: SampleFields) => ({
  candidates: [
    {
      content: { ...(parts === null ? {} : { parts }), role: 'model' },
      ...(finishReason === null ? {} : { finishReason }),
      index: 0,
    },
  ],
  usageMetadata,
  modelVersion: 'gemini-2.5-flash',
  responseId: 'mAitaLmkHPPlz7IPvtfUqQ4',
})
const counts = {
  promptTokenCount: 1200,
  candidatesTokenCount: 40,
  totalTokenCount: 1365,
  cachedContentTokenCount: 1024,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: 1200 }],
  thoughtsTokenCount: 125,
}

/** What geminiGenerateContent must read. */
export const geminiGenerateContentSamples: DeclaredSample[] = [
  {
    raw: answer(
      [
        { text: 'A greeting is called for.', thought: true },
        { text: 'Hello ', thoughtSignature: 'CtwBAVSoXO4' },
        { text: 'there.' },
      ],
      'STOP',
      counts,
    ),
    expected: {
      text: 'Hello there.',
      reasoning: 'A greeting is called for.',
      finish: 'stop',
      model: 'gemini-2.5-flash',
      usage: toSampleUsage(1200, 165, { cached_tokens: 1024, reasoning_tokens: 125 }),
    },
  },
  {
    raw: answer(
      [
        { functionCall: { name: 'get_weather', args: { city: 'Paris' } } },
        { functionCall: { name: 'get_time' } },
      ],
      'STOP',
      { promptTokenCount: 90, candidatesTokenCount: 20, totalTokenCount: 110 },
    ),
    expected: {
      text: '',
      finish: 'tool_calls',
      tool_calls: [
        { name: 'get_weather', arguments: '{"city":"Paris"}' },
        { name: 'get_time', arguments: '{}' },
      ],
      usage: { prompt_tokens: 90, completion_tokens: 20, reasoning_tokens: 0 },
    },
  },
  {
    raw: answer([{ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }], 'STOP', counts),
    expected: { images: [{ base64: 'iVBORw0KGgo=', mime_type: 'image/png' }] },
  },
  {
    raw: answer(null, 'MAX_TOKENS', { promptTokenCount: 8, totalTokenCount: 72, thoughtsTokenCount: 64 }),
    expected: { text: '', finish: 'length', usage: { completion_tokens: 64, reasoning_tokens: 64 } },
  },
  {
    raw: {
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: { promptTokenCount: 8, totalTokenCount: 8 },
      modelVersion: 'gemini-2.5-flash',
    },
    expected: { text: '', finish: 'content_filter', usage: { prompt_tokens: 8, completion_tokens: 0 } },
  },
  {
    events: [
      answer([{ text: 'Think.', thought: true }], null, { promptTokenCount: 8, totalTokenCount: 72 }),
      answer([{ text: 'One, ' }], null, {
        promptTokenCount: 8,
        candidatesTokenCount: 3,
        totalTokenCount: 75,
        thoughtsTokenCount: 64,
      }),
      answer([{ text: 'two.' }, { functionCall: { name: 'get_time', args: {} } }], 'STOP', {
        promptTokenCount: 8,
        candidatesTokenCount: 15,
        totalTokenCount: 87,
        thoughtsTokenCount: 64,
      }),
    ],
    expected: {
      text: 'One, two.',
      reasoning: 'Think.',
      tool_calls: [{ name: 'get_time', arguments: '{}' }],
      usage: { prompt_tokens: 8, completion_tokens: 79, total_tokens: 87, reasoning_tokens: 64 },
    },
  },
  {
    raw: { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } },
    expected: { error: { code: 503, status: 'UNAVAILABLE' } },
  },
  // the vendor's own tools, a picture among the thoughts, and a part that is not known yet
  {
    raw: {
      ...answer(
        [
          { inlineData: { mimeType: 'image/png', data: 'AAAA' }, thought: true },
          { executableCode: { language: 'PYTHON', code: 'print(12)' } },
          { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '12' } },
          { partOfTomorrow: { name: 'f', args: {} } },
          { text: 'High at noon.' },
          { functionCall: { id: 'fc-1', name: 'get_time', args: { zone: 'UTC' } } },
        ],
        'STOP',
        { ...counts, toolUsePromptTokenCount: 50 },
      ),
    },
    expected: {
      text: 'High at noon.',
      images: [],
      tool_calls: [{ id: 'fc-1', name: 'get_time', arguments: { zone: 'UTC' } }],
      usage: { prompt_tokens: 1250, cached_tokens: 1024, reasoning_tokens: 125 },
    },
  },
  {
    events: [
      answer([{ executableCode: { language: 'PYTHON', code: 'print(12)' } }], null, counts),
      answer([{ text: 'Only a thought.', thought: true }], null, counts),
      answer(null, 'SAFETY', counts),
    ],
    expected: { text: '', reasoning: 'Only a thought.', tool_calls: [], finish: 'content_filter' },
  },
  {
    events: [
      answer([{ text: 'High' }], null, counts),
      { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } },
    ],
    expected: { error: { code: 503 } },
  },
]
