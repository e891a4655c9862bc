import { type DeclaredSample, type SampleFields, toSampleUsage } from './declared-samples.ts'

const response = (output: SampleFields[], counts: SampleFields | null, more: SampleFields = {}) => ({
  id: 'resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b',
  object: 'response',
  created_at: 1741476542,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'gpt-5-2025-08-07',
  output,
  parallel_tool_calls: true,
  usage: counts,
  ...more,
})
const counts = {
  input_tokens: 2328,
  input_tokens_details: { cached_tokens: 2048 },
  output_tokens: 162,
  output_tokens_details: { reasoning_tokens: 128 },
  total_tokens: 2490,
}
const message = (text: string) => ({
  type: 'message',
  id: 'msg_67ccd2bf17f0819081ff3bb2cf6508e60bb6a6b452d3795b',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }],
})
const functionCall = (call_id: string, args: string) => ({
  type: 'function_call',
  id: 'fc_67ca09c6bedc8190a7abfec07b1a1332096610f474011cc0',
  call_id,
  name: 'get_current_weather',
  arguments: args,
  status: 'completed',
})
const added = (output_index: number, item: SampleFields) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
const finished = (output_index: number, item: SampleFields) => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
/** Items of the vendor's own tools, and one that is not known yet. */
const ownTools = [
  { type: 'reasoning', id: 'rs_1', summary: [] },
  {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'tide times' },
  },
  { type: 'file_search_call', id: 'fs_1', status: 'completed', queries: ['tides'], results: null },
  {
    type: 'code_interpreter_call',
    id: 'ci_1',
    status: 'completed',
    code: 'print(12)',
    container_id: 'cntr_1',
    outputs: [{ type: 'logs', logs: '12' }],
  },
  { type: 'mcp_list_tools', id: 'mcpl_1', server_label: 'port', tools: [] },
  {
    type: 'mcp_call',
    id: 'mcp_1',
    server_label: 'port',
    name: 'harbor',
    arguments: '{"name":"Wick"}',
    output: 'Open.',
    error: null,
  },
  { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_own', name: 'note', input: 'tides' },
  { type: 'item_of_tomorrow', id: 'tom_1', text: 'Not for the reader.', name: 'f', arguments: '{}' },
]
const picture = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'iVBORw0KGgo=' }
const event = (sequence_number: number, type: string, more: SampleFields) => ({
  type: `response.${type}`,
  sequence_number,
  ...more,
})
const textEvent = (at: number, type: string, more: SampleFields) =>
  event(at, `output_text.${type}`, { item_id: 'msg_1', output_index: 1, content_index: 0, ...more })
const callEvent = (at: number, type: string, more: SampleFields) =>
  event(at, `function_call_arguments.${type}`, { item_id: 'fc_1', output_index: 2, ...more })
const underWay = response([], null, { status: 'in_progress' })

/** What openaiResponses must read. */
export const openaiResponsesSamples: DeclaredSample[] = [
  {
    raw: response(
      [
        {
          id: 'rs_6876cf02e0bc8192b74af0fb64b715ff06fa2fcced15a5ac',
          type: 'reasoning',
          summary: [{ type: 'summary_text', text: 'A simple greeting.' }],
        },
        message('Hello there.'),
      ],
      counts,
    ),
    expected: {
      text: 'Hello there.',
      reasoning: 'A simple greeting.',
      finish: 'stop',
      model: 'gpt-5-2025-08-07',
      usage: toSampleUsage(2328, 162, { cached_tokens: 2048, reasoning_tokens: 128 }),
    },
  },
  {
    raw: response(
      [functionCall('call_a', '{"location":"Boston, MA"}'), functionCall('call_b', '{"location":"Rome"}')],
      counts,
    ),
    expected: {
      text: '',
      finish: 'tool_calls',
      tool_calls: [
        { id: 'call_a', name: 'get_current_weather', arguments: '{"location":"Boston, MA"}' },
        { id: 'call_b', name: 'get_current_weather', arguments: '{"location":"Rome"}' },
      ],
    },
  },
  {
    raw: response([message('The first of')], counts, {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    }),
    expected: { text: 'The first of', finish: 'length' },
  },
  {
    events: [
      event(0, 'created', { response: underWay }),
      event(1, 'in_progress', { response: underWay }),
      event(2, 'reasoning_summary_text.delta', {
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 0,
        delta: 'Greet.',
      }),
      textEvent(3, 'delta', { delta: 'Hi ' }),
      textEvent(4, 'delta', { delta: 'there!' }),
      textEvent(5, 'done', { text: 'Hi there!' }),
      event(6, 'output_item.added', {
        output_index: 2,
        item: { ...functionCall('call_1', ''), status: 'in_progress' },
      }),
      callEvent(7, 'delta', { delta: '{"location":' }),
      callEvent(8, 'delta', { delta: '"Paris"}' }),
      callEvent(9, 'done', { arguments: '{"location":"Paris"}' }),
      event(10, 'completed', { response: response([], counts) }),
    ],
    expected: {
      text: 'Hi there!',
      reasoning: 'Greet.',
      finish: 'tool_calls',
      tool_calls: [{ id: 'call_1', name: 'get_current_weather', arguments: '{"location":"Paris"}' }],
      usage: { prompt_tokens: 2328, completion_tokens: 162, cached_tokens: 2048, reasoning_tokens: 128 },
    },
  },
  {
    raw: response([], null, {
      status: 'failed',
      error: { code: 'server_error', message: 'The model failed to generate a response.' },
    }),
    expected: { error: { code: 'server_error' } },
  },
  {
    events: [
      event(0, 'created', { response: underWay }),
      {
        type: 'error',
        sequence_number: 1,
        code: 'rate_limit_exceeded',
        message: 'Slow down',
        param: null,
      },
    ],
    expected: { error: { code: 'rate_limit_exceeded', message: 'Slow down' } },
  },
  {
    raw: response([...ownTools, picture, message('High at noon.')], counts),
    expected: {
      text: 'High at noon.',
      tool_calls: [],
      images: [{ base64: 'iVBORw0KGgo=' }],
      finish: 'stop',
    },
  },
  {
    raw: response(
      [{ ...message(''), content: [{ type: 'refusal', refusal: 'I cannot help with that.' }] }],
      counts,
    ),
    expected: { text: 'I cannot help with that.', finish: 'stop' },
  },
  {
    raw: response([ownTools[0] as SampleFields], counts, {
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
    }),
    expected: { text: '', finish: 'content_filter' },
  },
  {
    events: [
      event(0, 'created', { response: { ...underWay, status: 'queued' } }),
      ...[...ownTools, picture].flatMap((item, at) => [added(at, item), finished(at, item)]),
      event(90, 'mcp_call_arguments.delta', {
        output_index: 5,
        item_id: 'mcp_1',
        delta: '{"name":"Wick"}',
      }),
      event(91, 'code_interpreter_call_code.delta', {
        output_index: 3,
        item_id: 'ci_1',
        delta: 'print(12)',
      }),
      event(92, 'event_of_tomorrow', { output_index: 7, delta: 'Not for the reader.' }),
      textEvent(93, 'delta', { output_index: 9, delta: 'High at ' }),
      textEvent(94, 'annotation.added', { output_index: 9, annotation: { type: 'url_citation' } }),
      textEvent(95, 'delta', { output_index: 9, delta: 'noon.' }),
      finished(9, message('High at noon.')),
      event(99, 'completed', { response: response([], counts) }),
    ],
    expected: {
      text: 'High at noon.',
      tool_calls: [],
      images: [{ base64: 'iVBORw0KGgo=' }],
      finish: 'stop',
      usage: toSampleUsage(2328, 162, { cached_tokens: 2048, reasoning_tokens: 128 }),
    },
  },
  {
    events: [
      event(0, 'created', { response: underWay }),
      ...ownTools.flatMap((item, at) => [added(at, item), finished(at, item)]),
      event(99, 'completed', { response: response([], counts) }),
    ],
    expected: { text: '', tool_calls: [], finish: 'stop', usage: { completion_tokens: 162 } },
  },
  // arguments that come whole only
  {
    events: [
      event(0, 'created', { response: underWay }),
      added(0, functionCall('call_w', '')),
      callEvent(2, 'done', { output_index: 0, arguments: '{"location":"Wick"}' }),
      finished(0, functionCall('call_w', '{"location":"Wick"}')),
      added(1, functionCall('call_d', '')),
      callEvent(5, 'delta', { output_index: 1, delta: '{"location":' }),
      callEvent(6, 'delta', { output_index: 1, delta: '"Bude"}' }),
      finished(1, functionCall('call_d', '{"location":"Bude"}')),
      event(9, 'completed', { response: response([], counts) }),
    ],
    expected: {
      text: '',
      finish: 'tool_calls',
      tool_calls: [
        { id: 'call_w', name: 'get_current_weather', arguments: '{"location":"Wick"}' },
        { id: 'call_d', name: 'get_current_weather', arguments: '{"location":"Bude"}' },
      ],
    },
  },
  {
    events: [
      event(0, 'created', { response: underWay }),
      event(1, 'refusal.delta', { output_index: 0, content_index: 0, delta: 'I cannot help.' }),
      event(2, 'incomplete', {
        response: response([], counts, {
          status: 'incomplete',
          incomplete_details: { reason: 'content_filter' },
        }),
      }),
    ],
    expected: { text: 'I cannot help.', finish: 'content_filter' },
  },
  {
    events: [
      event(0, 'created', { response: underWay }),
      event(1, 'failed', {
        response: response([], null, {
          status: 'failed',
          error: { code: 'server_error', message: 'The model failed.' },
        }),
      }),
    ],
    expected: { error: { code: 'server_error' } },
  },
]
