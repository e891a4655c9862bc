import type { DeclaredSample, SampleFields } from './declared-samples.ts'

const message = (content: SampleFields[], stop_reason: string | null, usage: SampleFields) => ({
  id: 'msg_013Zva2CMHLNnXjNJJKqJ2EF',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content,
  stop_reason,
  stop_sequence: null,
  usage,
})
const counts = {
  input_tokens: 21,
  cache_creation_input_tokens: 100,
  cache_read_input_tokens: 2000,
  output_tokens: 85,
}
const begin = (index: number, content_block: SampleFields) => ({
  type: 'content_block_start',
  index,
  content_block,
})
const toolUse = (id: string, input: SampleFields) => ({ type: 'tool_use', id, name: 'get_weather', input })
const delta = (index: number, chunk: SampleFields) => ({ type: 'content_block_delta', index, delta: chunk })
/** A search, a tool of an MCP server, code, and a block that is not known yet. */
const ownTools = [
  { type: 'server_tool_use', id: 'srvtoolu_01Ws', name: 'web_search', input: { query: 'tide times' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_01Ws',
    content: [
      { type: 'web_search_result', title: 'Tides', url: 'https://tides.example.com', page_age: null },
    ],
  },
  { type: 'mcp_tool_use', id: 'mcptoolu_01Ha', name: 'harbor', server_name: 'port', input: { name: 'Wick' } },
  {
    type: 'mcp_tool_result',
    tool_use_id: 'mcptoolu_01Ha',
    is_error: false,
    content: [{ type: 'text', text: 'Open.' }],
  },
  {
    type: 'bash_code_execution_tool_result',
    tool_use_id: 'srvtoolu_01Sh',
    content: { type: 'bash_code_execution_result', stdout: '12', stderr: '', return_code: 0, content: [] },
  },
  { type: 'container_upload', file_id: 'file_01Tide' },
  { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va' },
  { type: 'block_of_tomorrow', text: 'Not for the reader.' },
]
const end = (index: number) => ({ type: 'content_block_stop', index })

/** What anthropicMessages must read. */
export const anthropicMessagesSamples: DeclaredSample[] = [
  {
    raw: message([{ type: 'text', text: 'Hi! My name is Claude.' }], 'end_turn', {
      input_tokens: 2095,
      output_tokens: 503,
    }),
    expected: {
      text: 'Hi! My name is Claude.',
      finish: 'stop',
      model: 'claude-sonnet-4-5-20250929',
      usage: { prompt_tokens: 2095, completion_tokens: 503, total_tokens: 2598, cached_tokens: 0 },
    },
  },
  {
    raw: message(
      [
        { type: 'thinking', thinking: 'The user asks for the weather.', signature: 'EqoBCkgIARABGAIiQL2' },
        { type: 'text', text: 'I will look.' },
        toolUse('toolu_01D7FLrfh4GYq7yT1ULFeyMV', { city: 'Paris' }),
      ],
      'tool_use',
      counts,
    ),
    expected: {
      text: 'I will look.',
      reasoning: 'The user asks for the weather.',
      tool_calls: [
        { id: 'toolu_01D7FLrfh4GYq7yT1ULFeyMV', name: 'get_weather', arguments: '{"city":"Paris"}' },
      ],
      finish: 'tool_calls',
      usage: { prompt_tokens: 2121, completion_tokens: 85, total_tokens: 2206, cached_tokens: 2000 },
    },
  },
  {
    raw: message([{ type: 'text', text: 'Once upon a' }], 'max_tokens', counts),
    expected: { finish: 'length' },
  },
  { raw: message([], 'refusal', counts), expected: { text: '', finish: 'content_filter' } },
  {
    events: [
      {
        type: 'message_start',
        message: message([], null, { ...counts, output_tokens: 1 }),
      },
      begin(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Look it up.' }),
      delta(0, { type: 'signature_delta', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' }),
      end(0),
      begin(1, { type: 'text', text: '' }),
      { type: 'ping' },
      delta(1, { type: 'text_delta', text: 'Let me ' }),
      delta(1, { type: 'text_delta', text: 'check.' }),
      end(1),
      begin(2, toolUse('toolu_01T1x1fJ34qAmk2tNTrN7Up6', {})),
      delta(2, { type: 'input_json_delta', partial_json: '' }),
      delta(2, { type: 'input_json_delta', partial_json: '{"city":' }),
      delta(2, { type: 'input_json_delta', partial_json: ' "Paris"}' }),
      end(2),
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { output_tokens: 89 },
      },
      { type: 'message_stop' },
    ],
    expected: {
      text: 'Let me check.',
      reasoning: 'Look it up.',
      tool_calls: [
        { id: 'toolu_01T1x1fJ34qAmk2tNTrN7Up6', name: 'get_weather', arguments: '{"city": "Paris"}' },
      ],
      finish: 'tool_calls',
      usage: { prompt_tokens: 2121, completion_tokens: 89, total_tokens: 2210, cached_tokens: 2000 },
    },
  },
  {
    events: [{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
    expected: { error: { type: 'overloaded_error' } },
  },
  {
    raw: message(
      [...ownTools, { type: 'text', text: 'High at ' }, { type: 'text', text: 'noon.' }],
      'end_turn',
      {
        ...counts,
        output_tokens_details: { thinking_tokens: 31 },
        server_tool_use: { web_search_requests: 1 },
      },
    ),
    expected: {
      text: 'High at noon.',
      reasoning: '',
      tool_calls: [],
      finish: 'stop',
      usage: { prompt_tokens: 2121, completion_tokens: 85, cached_tokens: 2000, reasoning_tokens: 31 },
    },
  },
  {
    events: [
      { type: 'message_start', message: message([], null, { ...counts, output_tokens: 2 }) },
      ...ownTools.flatMap((block, index) => [
        begin(index, 'input' in block ? { ...block, input: {} } : block),
        ...('input' in block
          ? [delta(index, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) })]
          : []),
        end(index),
      ]),
      begin(8, { type: 'text', text: '' }),
      delta(8, {
        type: 'citations_delta',
        citation: { type: 'web_search_result_location', title: 'Tides' },
      }),
      delta(8, { type: 'text_delta', text: 'High at noon.' }),
      delta(8, { type: 'delta_of_tomorrow', text: 'Not for the reader.' }),
      end(8),
      begin(9, toolUse('toolu_01Ca', {})),
      delta(9, { type: 'input_json_delta', partial_json: '{"city":"Wick"}' }),
      end(9),
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { ...counts, input_tokens: 900, output_tokens_details: { thinking_tokens: 31 } },
      },
      { type: 'message_stop' },
    ],
    expected: {
      text: 'High at noon.',
      tool_calls: [{ id: 'toolu_01Ca', name: 'get_weather', arguments: '{"city":"Wick"}' }],
      finish: 'tool_calls',
      usage: { prompt_tokens: 3000, completion_tokens: 85, cached_tokens: 2000, reasoning_tokens: 31 },
    },
  },
  {
    events: [
      { type: 'message_start', message: message([], null, counts) },
      ...ownTools.flatMap((block, index) => [begin(index, block), end(index)]),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 40 } },
    ],
    expected: { text: '', tool_calls: [], finish: 'stop', usage: { completion_tokens: 40 } },
  },
  // calls that the vendor's code makes: their input comes whole
  {
    events: [
      { type: 'message_start', message: message([], null, counts) },
      begin(0, { type: 'server_tool_use', id: 'srvtoolu_01Co', name: 'code_execution', input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: '{"code":"get_weather()"}' }),
      end(0),
      begin(1, { ...toolUse('toolu_01Pr', { city: 'Wick' }), caller: { type: 'code_execution_20250825' } }),
      end(1),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 12 } },
    ],
    expected: {
      tool_calls: [{ id: 'toolu_01Pr', name: 'get_weather', arguments: { city: 'Wick' } }],
      finish: 'tool_calls',
    },
  },
  {
    events: [
      {
        type: 'message_start',
        message: message(
          [toolUse('toolu_01Qs', { city: 'Wick' }), toolUse('toolu_01Qt', { city: 'Bude' })],
          'tool_use',
          { input_tokens: 0, output_tokens: 0 },
        ),
      },
      { type: 'message_stop' },
    ],
    expected: {
      tool_calls: [
        { id: 'toolu_01Qs', arguments: { city: 'Wick' } },
        { id: 'toolu_01Qt', arguments: { city: 'Bude' } },
      ],
      finish: 'tool_calls',
    },
  },
  {
    raw: message(
      [
        { type: 'compaction', content: 'So far: tides.' },
        { type: 'text', text: 'Yes.' },
      ],
      'end_turn',
      {
        ...counts,
        iterations: [
          { type: 'compaction', input_tokens: 50000, cache_read_input_tokens: 10, output_tokens: 400 },
          { type: 'message', ...counts },
          { type: 'advisor_message', input_tokens: 700, output_tokens: 900 },
        ],
      },
    ),
    expected: {
      text: 'Yes.',
      usage: { prompt_tokens: 52131, completion_tokens: 485, total_tokens: 52616, cached_tokens: 2010 },
    },
  },
  {
    events: [
      { type: 'message_start', message: message([], null, counts) },
      begin(0, { type: 'text', text: 'High' }),
      { type: 'error', error: { type: 'api_error', message: 'Internal server error' } },
    ],
    expected: { error: { type: 'api_error' } },
  },
]
