import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { builtInFormats } from '../../../../src/features/response-formats/built-in/built-in-formats.ts'
import { modelOf } from '../../../support/http-call.ts'
import { startVendor, type VendorAnswer } from '../../../support/http-vendor.ts'
import { createMeteredModels } from '../../../support/metered-models.ts'
import { ask, failureOf, never, wholeOf } from '../../../support/models.ts'

/** Answers that no vendor was seen to send, by the call path of a run: how replies begin, are cut, fail and end. */

const formatOf = (name: string) => builtInFormats().find((one) => one.name === name) ?? null
/** `openai` is the protocol without a format. */
const callOf = async (format: string, answer: VendorAnswer) => {
  await using vendor = await startVendor(() => answer)
  const entry = format === 'openai' ? {} : modelOf(formatOf(format) as never, vendor.url)
  const { models } = createMeteredModels({ baseUrl: vendor.url }, entry)
  const call = models.call(ask({ onText: () => {} }), never())
  await call.catch(() => {})
  return { call, requests: vendor.requests.length }
}
const data = (...events: unknown[]): string =>
  events.map((one) => `data: ${typeof one === 'string' ? one : JSON.stringify(one)}\n\n`).join('')
const lines = (...events: unknown[]): string => events.map((one) => `${JSON.stringify(one)}\n`).join('')
const chunk = (delta: object | null, finish_reason: unknown = null, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
})
const whole = (message: object, finish_reason: unknown = 'stop', more: object = {}) => ({
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  ...more,
})
const fn = (index: number | null, id: string | null, name: string | null, args: unknown) => ({
  ...{ index, id, type: 'function', function: { name, arguments: args } },
})
const claudeStart = {
  type: 'message_start',
  message: { model: 'm', content: [], usage: { input_tokens: 5 } },
}
const claudeText = (index: number, ...texts: string[]) => [
  { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
  ...texts.map((text) => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } })),
  { type: 'content_block_stop', index },
]
const claudeCall = (index: number, ...parts: string[]) => [
  {
    type: 'content_block_start',
    index,
    content_block: { type: 'tool_use', id: `t${index}`, name: 'note', input: {} },
  },
  ...parts.map((partial_json) => ({
    ...{ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } },
  })),
  { type: 'content_block_stop', index },
]
const claudeEnd = (stop_reason: string | null) => [
  { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 7 } },
  { type: 'message_stop' },
]
const gem = (parts: object[] | null, finishReason?: string, more: object = {}) => ({
  candidates: [
    { ...(parts && { content: { role: 'model', parts } }), ...(finishReason && { finishReason }) },
  ],
  ...more,
})
const oll = (message: object, more: object = {}) => ({
  model: 'm',
  message: { role: 'assistant', ...message },
  done: false,
  ...more,
})
const qwen = (message: object, finish_reason: string | null = 'null', more: object = {}) => ({
  output: { choices: [{ message: { role: 'assistant', ...message }, finish_reason }] },
  ...more,
})
const sse = (body: string): VendorAnswer => ({ headers: { 'content-type': 'text/event-stream' }, body })
const isA = { text: 'A', finish: 'stop', tool_calls: [] }
const note = (args = '{"a":1}', id: unknown = expect.any(String)) => ({ id, name: 'note', arguments: args })
const calls = (...list: object[]) => ({ tool_calls: list, finish: 'tool_calls' })

const good: [title: string, format: string, answer: VendorAnswer, reply: object][] = [
  [
    'behind a byte order mark',
    'openai',
    sse(`\ufeff${data(chunk({ content: 'A' }), chunk({}, 'stop'), '[DONE]')}`),
    isA,
  ],
  [
    'with lines that end in CR LF',
    'openai',
    sse(data(chunk({ content: 'A' }), chunk({}, 'stop'), '[DONE]').replaceAll('\n', '\r\n')),
    isA,
  ],
  [
    'with lines that end in CR',
    'openai',
    sse(data(chunk({ content: 'A' }), chunk({}, 'stop'), '[DONE]').replaceAll('\n', '\r')),
    isA,
  ],
  [
    'with a delta of null at its end',
    'openai',
    sse(data(chunk({ content: 'A' }), chunk(null, 'stop'), '[DONE]')),
    isA,
  ],
  [
    'with its last text beside its reason',
    'openai',
    sse(data(chunk({ content: '' }), chunk({ content: 'A' }, 'stop'))),
    isA,
  ],
  [
    'whose connection breaks behind its reason',
    'openai',
    {
      ...sse(''),
      pieces: [data(chunk({ content: 'A' }), chunk({}, 'stop')), 'data: {"choi'],
      ending: 'destroy',
    },
    isA,
  ],
  [
    'whose usage is cut',
    'openai',
    sse(`${data(chunk({ content: 'A' }), chunk({}, 'stop'))}data: {"choices":[],"usage":{"prompt_to`),
    isA,
  ],
  ['that is marked as ended, without a reason', 'openai', sse(data(chunk({ content: 'A' }), '[DONE]')), isA],
  [
    'compressed',
    'openai',
    {
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      pieces: [gzipSync(JSON.stringify(whole({ content: 'A' })))],
    },
    isA,
  ],
  [
    'with a reason in capital letters',
    'openai',
    sse(data(chunk({ content: 'A' }), chunk({}, 'FINISH_REASON_MAX_TOKENS'), '[DONE]')),
    { finish: 'length' },
  ],
  [
    'with arguments that begin as null',
    'openai',
    sse(
      data(
        chunk({ tool_calls: [fn(0, 'c', 'note', null)] }),
        chunk({ tool_calls: [fn(0, null, null, '{"a":1}')] }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ),
    calls(note()),
  ],
  [
    'with arguments that are an object',
    'openai',
    sse(data(chunk({ tool_calls: [fn(0, 'c', 'note', { a: 1 })] }), chunk({}, 'tool_calls'), '[DONE]')),
    calls(note()),
  ],
  [
    'with calls from index 1',
    'openai',
    sse(
      data(
        chunk({ tool_calls: [fn(1, 'c', 'note', '{"a"')] }),
        chunk({ tool_calls: [fn(1, null, null, ':1}')] }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ),
    calls(note()),
  ],
  [
    'with arguments cut at each character',
    'openai',
    sse(
      data(
        chunk({ tool_calls: [fn(0, 'c', 'note', '')] }),
        ...[...'{"a":"x\\"}{"}'].map((one) => chunk({ tool_calls: [fn(0, null, null, one)] })),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ),
    calls(note('{"a":"x\\"}{"}')),
  ],
  [
    'with usage in x_groq',
    'openai',
    sse(
      data(
        chunk({ content: 'A' }),
        chunk({}, 'stop', { x_groq: { usage: { prompt_tokens: 3, completion_tokens: 4 } } }),
        '[DONE]',
      ),
    ),
    isA,
  ],
  [
    'with counts that end in a placeholder',
    'openai',
    sse(
      data(
        chunk({ content: 'A' }, null, { usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } }),
        chunk({}, 'stop', { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }),
        '[DONE]',
      ),
    ),
    { ...isA, usage: { prompt_tokens: 3 } },
  ],
  [
    'with usage that is null',
    'openai',
    sse(data(chunk({ content: 'A' }, null, { usage: null }), chunk({}, 'stop', { usage: null }), '[DONE]')),
    isA,
  ],
  ['of a reason for calls without one', 'openai', { body: whole({ content: 'A' }, 'tool_calls') }, isA],
  [
    'with double-encoded arguments',
    'openai',
    { body: whole({ content: null, tool_calls: [fn(0, 'c', 'note', '"{\\"a\\":1}"')] }, 'tool_calls') },
    calls(note('{"a":1}')),
  ],
  [
    'with a tail of white space',
    'openai',
    {
      headers: { 'content-type': 'application/json' },
      body: `\n\n${JSON.stringify(whole({ content: 'A' }))}\n\n\n`,
    },
    isA,
  ],
  [
    'cut, with a call',
    'openai-chat',
    sse(data(chunk({ tool_calls: [fn(0, 'c', 'note', '{"a":1}')] }), chunk({}, 'length'), '[DONE]')),
    { finish: 'length' },
  ],
  [
    'ended by message_stop alone',
    'anthropic-messages',
    sse(data(claudeStart, ...claudeText(0, 'A'), { type: 'message_stop' })),
    isA,
  ],
  [
    'ended by message_stop, with a reason of null',
    'anthropic-messages',
    sse(data(claudeStart, ...claudeCall(0, '{"a":', '1}'), ...claudeEnd(null))),
    calls(note()),
  ],
  [
    'of two blocks',
    'anthropic-messages',
    sse(data(claudeStart, ...claudeText(0, 'A'), ...claudeText(1, 'B'), ...claudeEnd('end_turn'))),
    { text: 'AB' },
  ],
  [
    'with a call without deltas',
    'anthropic-messages',
    sse(data(claudeStart, ...claudeCall(0), ...claudeEnd('tool_use'))),
    calls(note('{}')),
  ],
  [
    'with an empty first delta',
    'anthropic-messages',
    sse(data(claudeStart, ...claudeCall(0, '', '{"a":1}'), ...claudeEnd('tool_use'))),
    calls(note()),
  ],
  [
    'with interleaved calls',
    'anthropic-messages',
    sse(
      data(
        claudeStart,
        ...claudeCall(0, '{"a"').slice(0, 2),
        ...claudeCall(1, '{"b":2}').slice(0, 2),
        { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: ':1}' } },
        ...claudeEnd('tool_use'),
      ),
    ),
    calls(note(), note('{"b":2}')),
  ],
  [
    'with redacted thoughts',
    'anthropic-messages',
    sse(
      data(
        claudeStart,
        { type: 'content_block_start', index: 0, content_block: { type: 'redacted_thinking', data: 'x' } },
        { type: 'content_block_stop', index: 0 },
        ...claudeText(1, 'A'),
        ...claudeEnd('end_turn'),
      ),
    ),
    isA,
  ],
  [
    'refused in the middle',
    'anthropic-messages',
    sse(data(claudeStart, ...claudeText(0, 'A'), ...claudeEnd('refusal'))),
    { text: 'A', finish: 'content_filter' },
  ],
  [
    'with a text that starts in its block',
    'anthropic-messages',
    sse(
      data(
        claudeStart,
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'A' } },
        ...claudeEnd('end_turn'),
      ),
    ),
    isA,
  ],
  [
    'whole, although events were asked for',
    'anthropic-messages',
    {
      body: {
        type: 'message',
        content: [{ type: 'text', text: 'A' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    },
    isA,
  ],
  [
    'with equal calls in one event',
    'gemini-generate-content',
    sse(
      data(
        gem(
          [
            { functionCall: { name: 'note', args: { a: 1 } } },
            { functionCall: { name: 'note', args: { a: 1 } } },
          ],
          'STOP',
        ),
      ),
    ),
    calls(note(), note()),
  ],
  [
    'with equal calls in two events',
    'gemini-generate-content',
    sse(
      data(
        gem([{ functionCall: { name: 'note', args: { a: 1 } } }]),
        gem([{ functionCall: { name: 'note', args: { a: 1 } } }]),
        gem(null, 'STOP'),
      ),
    ),
    calls(note(), note()),
  ],
  [
    'with calls without arguments in two events',
    'gemini-generate-content',
    sse(data(gem([{ functionCall: { name: 'note' } }]), gem([{ functionCall: { name: 'read' } }], 'STOP'))),
    calls(note('{}'), { name: 'read', arguments: '{}' }),
  ],
  [
    'with code that it ran',
    'gemini-generate-content',
    sse(
      data(
        gem(
          [
            { executableCode: { language: 'PYTHON', code: 'print(1)' } },
            { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
            { text: 'A' },
          ],
          'STOP',
        ),
      ),
    ),
    isA,
  ],
  [
    'as a list over many lines',
    'gemini-generate-content',
    {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify([gem([{ text: 'A' }]), gem([{ text: 'B' }], 'STOP')], null, 2),
    },
    { text: 'AB' },
  ],
  [
    'with a reason in each event',
    'gemini-generate-content',
    sse(data(gem([{ text: 'A' }], 'STOP'), gem([{ text: 'B' }], 'STOP'))),
    { text: 'AB', finish: 'stop' },
  ],
  [
    'with a candidate of tokens alone behind its end',
    'gemini-generate-content',
    sse(
      data(gem([{ text: 'A' }], 'STOP'), { usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1 } }),
    ),
    isA,
  ],
  [
    'with a thought beside its text',
    'gemini-generate-content',
    sse(data(gem([{ text: 'hm', thought: true }, { text: 'A' }], 'STOP'))),
    { ...isA, reasoning: 'hm' },
  ],
  [
    'with calls without arguments in two lines',
    'ollama-chat',
    {
      body: lines(
        oll({ content: '', tool_calls: [{ function: { name: 'note' } }] }),
        oll({ content: '', tool_calls: [{ function: { name: 'read' } }] }),
        oll({ content: '' }, { done: true, done_reason: 'stop' }),
      ),
    },
    calls(note('{}'), { name: 'read', arguments: '{}' }),
  ],
  [
    'with one call in two lines',
    'ollama-chat',
    {
      body: lines(
        oll({ content: '', tool_calls: [{ function: { index: 0, name: 'note', arguments: { a: 1 } } }] }),
        oll({ content: '', tool_calls: [{ function: { index: 1, name: 'note', arguments: { b: 2 } } }] }),
        oll({ content: '' }, { done: true, done_reason: 'stop' }),
      ),
    },
    calls(note(), note('{"b":2}')),
  ],
  [
    'without a line end at its end',
    'ollama-chat',
    { body: lines(oll({ content: 'A' }), oll({ content: '' }, { done: true })).trimEnd() },
    isA,
  ],
  [
    'with lines between empty ones',
    'ollama-chat',
    {
      body: `\n\n${lines(oll({ content: 'A' }))}\r\n\n${lines(oll({ content: '' }, { done: true, done_reason: 'stop' }))}`,
    },
    isA,
  ],
  [
    'as events',
    'ollama-chat',
    sse(data(oll({ content: 'A' }), oll({ content: '' }, { done: true, done_reason: 'stop' }))),
    isA,
  ],
  [
    'with a comment that has its status',
    'qwen-dashscope',
    sse(
      `id:1\nevent:result\n:HTTP_STATUS/200\n${data(qwen({ content: 'A' }))}id:2\nevent:result\n:HTTP_STATUS/200\n${data(qwen({ content: '' }, 'stop'))}`,
    ),
    isA,
  ],
  [
    'with a call in parts',
    'qwen-dashscope',
    sse(
      data(
        qwen({ content: '', tool_calls: [fn(0, 'c', 'note', '')] }),
        qwen({ content: '', tool_calls: [fn(0, '', '', '{"a"')] }),
        qwen({ content: '', tool_calls: [fn(0, '', '', ':1}')] }, 'tool_calls'),
      ),
    ),
    calls(note()),
  ],
  [
    'with arguments that come whole, apart',
    'openai-responses',
    sse(
      data(
        {
          type: 'response.output_item.added',
          output_index: 0,
          item: { type: 'function_call', call_id: 'c', name: 'note', arguments: '' },
        },
        { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"a":1}' },
        { type: 'response.completed', response: { status: 'completed', output: [] } },
      ),
    ),
    calls(note()),
  ],
  [
    'withheld in the middle',
    'openai-responses',
    sse(
      data(
        { type: 'response.output_text.delta', delta: 'A' },
        {
          type: 'response.incomplete',
          response: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
        },
      ),
    ),
    { text: 'A', finish: 'content_filter' },
  ],
  [
    'with its call once, although the last event has it again',
    'openai-responses',
    sse(
      data(
        {
          type: 'response.output_item.done',
          output_index: 0,
          item: { type: 'function_call', call_id: 'c', name: 'note', arguments: '{"a":1}' },
        },
        {
          type: 'response.completed',
          response: {
            status: 'completed',
            output: [{ type: 'function_call', call_id: 'c', name: 'note', arguments: '{"a":1}' }],
          },
        },
      ),
    ),
    calls(note()),
  ],
]

test.each(good)('a reply %s is read (%s)', async (_, format, answer, reply) => {
  const { call } = await callOf(format, answer)
  expect(await call).toMatchObject(reply)
})

const error = (message: string, more: object = {}) => ({ error: { message, ...more } })
const bad: [
  title: string,
  format: string,
  answer: VendorAnswer,
  failure: { code?: string; requests?: number; words?: string },
][] = [
  [
    'with a text in its item',
    'openai-responses',
    sse(
      data(
        {
          type: 'response.output_item.done',
          output_index: 0,
          item: { type: 'message', content: [{ type: 'output_text', text: 'A' }] },
        },
        { type: 'response.completed', response: { status: 'completed', output: [] } },
      ),
    ),
    { code: 'model_unreadable_answer' },
  ],
  [
    'with a text that comes whole',
    'openai-responses',
    sse(
      data(
        { type: 'response.output_text.done', output_index: 0, text: 'A' },
        { type: 'response.completed', response: { status: 'completed', output: [] } },
      ),
    ),
    { code: 'model_unreadable_answer' },
  ],
  [
    'cut in an event',
    'openai',
    sse(`${data(chunk({ content: 'A' }))}data: {"choices":[{"delta":{"con`),
    { code: 'model_unavailable', requests: 3 },
  ],
  [
    'cut behind a call',
    'openai',
    sse(data(chunk({ tool_calls: [fn(0, 'c', 'note', '{"a":1}')] }))),
    { code: 'model_unavailable' },
  ],
  [
    'cut in a list',
    'gemini-generate-content',
    {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify([gem([{ text: 'A' }]), gem([{ text: 'B' }], 'STOP')], null, 2).slice(0, -60),
    },
    { code: 'model_(unavailable|bad_reply)', requests: 3 },
  ],
  [
    'cut in a line',
    'ollama-chat',
    { body: lines(oll({ content: 'A' }), oll({ content: 'B' })).slice(0, -9) },
    { code: 'model_(unavailable|bad_reply)', requests: 3 },
  ],
  [
    'compressed and cut',
    'openai',
    {
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      pieces: [gzipSync(JSON.stringify(whole({ content: 'A' }))).subarray(0, 40)],
    },
    { requests: 3 },
  ],
  [
    'shorter than its length',
    'openai',
    {
      headers: { 'content-type': 'application/json', 'content-length': '4000' },
      body: JSON.stringify(whole({ content: 'A' })).slice(0, 30),
      ending: 'destroy',
    },
    { code: 'model_unavailable', requests: 3 },
  ],
  [
    'of a login page',
    'anthropic-messages',
    {
      headers: { 'content-type': 'text/html' },
      body: '<!DOCTYPE html><html><head><title>Sign in</title></head></html>',
    },
    { words: 'Sign in' },
  ],
  ['that is the word OK', 'ollama-chat', { headers: { 'content-type': 'text/plain' }, body: 'OK' }, {}],
  ['that is null', 'openai', { headers: { 'content-type': 'application/json' }, body: 'null' }, {}],
  [
    'that is an empty list',
    'gemini-generate-content',
    { headers: { 'content-type': 'application/json' }, body: '[]' },
    {},
  ],
  ['without a body', 'anthropic-messages', { status: 204 }, {}],
  ['that is accepted for later', 'openai', { status: 202, body: { status: 'queued', id: 'x' } }, {}],
  [
    'overloaded in the middle',
    'anthropic-messages',
    sse(
      data(claudeStart, ...claudeText(0, 'A'), {
        type: 'error',
        error: { type: 'overloaded_error', message: 'Overloaded' },
      }),
    ),
    { code: 'model_unavailable', words: 'Overloaded' },
  ],
  [
    'limited in the middle',
    'openai-responses',
    sse(
      data(
        { type: 'response.output_text.delta', delta: 'A' },
        { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down', sequence_number: 3 },
      ),
    ),
    { code: 'model_rate_limited', words: 'Slow down' },
  ],
  [
    'failed as a response',
    'openai-responses',
    sse(
      data({
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'server_error', message: 'It broke' } },
      }),
    ),
    { words: 'It broke' },
  ],
  [
    'failed as a line',
    'ollama-chat',
    { body: lines(oll({ content: 'A' }), { error: 'model runner has unexpectedly stopped' }) },
    { words: 'runner' },
  ],
  [
    'refused as an event with a status in its comment',
    'qwen-dashscope',
    sse(
      'id:1\nevent:error\n:HTTP_STATUS/429\ndata:{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded","request_id":"x"}\n\n',
    ),
    { code: 'model_rate_limited' },
  ],
  [
    'of arrears',
    'qwen-dashscope',
    {
      status: 400,
      body: {
        code: 'Arrearage',
        message: 'Access denied, please make sure your account is in good standing.',
      },
    },
    { code: 'model_unauthorized', requests: 1 },
  ],
  [
    'with codes in the JSON of its words',
    'openai',
    { status: 400, body: error('{"error":{"code":"insufficient_quota","message":"No more."}}') },
    { code: 'model_unauthorized', requests: 1 },
  ],
  [
    'with codes in the raw answer of the vendor behind',
    'openai',
    {
      status: 400,
      body: error('Provider returned error', {
        code: 400,
        metadata: { raw: '{"error":{"code":"context_length_exceeded","message":"No."}}', provider_name: 'X' },
      }),
    },
    { code: 'model_context_too_long' },
  ],
  [
    'with an error that is the text of JSON',
    'openai',
    sse(data({ error: '{"code":"rate_limit_exceeded","message":"No."}' })),
    { code: 'model_rate_limited' },
  ],
  [
    'with a status in the JSON of its words',
    'openai',
    sse(data(error('{"error":{"code":503,"status":"UNAVAILABLE","message":"No."}}'))),
    { code: 'model_unavailable' },
  ],
  [
    'with a page as its words',
    'openai',
    { status: 500, body: error('<html><head><title>502 Bad Gateway</title></head></html>') },
    { code: 'model_unavailable', words: '502 Bad Gateway' },
  ],
  [
    'in XML',
    'openai',
    {
      status: 503,
      headers: { 'content-type': 'application/xml' },
      body: '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>',
    },
    { code: 'model_unavailable', words: 'reduce' },
  ],
  [
    'in a list',
    'gemini-generate-content',
    {
      status: 429,
      body: [{ error: { code: 429, message: 'Resource has been exhausted', status: 'RESOURCE_EXHAUSTED' } }],
    },
    { code: 'model_rate_limited' },
  ],
  [
    'of a leaked key',
    'gemini-generate-content',
    {
      status: 403,
      body: error('Your API key was reported as leaked. Please use another API key.', {
        code: 403,
        status: 'PERMISSION_DENIED',
      }),
    },
    { requests: 1 },
  ],
  [
    'of a bad key, as 400',
    'gemini-generate-content',
    {
      status: 400,
      body: error('API key not valid. Please pass a valid API key.', {
        code: 400,
        status: 'INVALID_ARGUMENT',
        details: [{ reason: 'API_KEY_INVALID' }],
      }),
    },
    { requests: 1 },
  ],
  [
    'blocked as a prompt',
    'gemini-generate-content',
    sse(data({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } })),
    { code: 'model_content_filtered' },
  ],
  [
    'whose calls are malformed',
    'gemini-generate-content',
    sse(data(gem(null, 'MALFORMED_FUNCTION_CALL'))),
    { words: 'MALFORMED_FUNCTION_CALL' },
  ],
  [
    'whose signature is missing',
    'gemini-generate-content',
    sse(data(gem([{ text: 'A' }], 'MISSING_THOUGHT_SIGNATURE'))),
    {},
  ],
  [
    'of a model that is not there',
    'ollama-chat',
    { status: 404, body: { error: 'model "x" not found, try pulling it first' } },
    { code: 'model_bad_request', requests: 1 },
  ],
  [
    'whose usage comes and nothing else',
    'gemini-generate-content',
    sse(data({ usageMetadata: { promptTokenCount: 3 } })),
    { code: 'model_(unavailable|bad_reply)' },
  ],
  ['of comments alone', 'openai', sse(': OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n'), {}],
  [
    'that ends at once behind its role',
    'openai',
    sse(data(chunk({ role: 'assistant', content: '' }))),
    { code: 'model_unavailable' },
  ],
  [
    'of a text that ends without any mark',
    'qwen-dashscope',
    sse(data(qwen({ content: 'A' }), qwen({ content: 'B' }))),
    { code: 'model_unavailable' },
  ],
  [
    'that a moderator ended',
    'openai',
    { status: 403, body: error('Your request was blocked: harmful content', { code: 'content_filter' }) },
    { code: 'model_content_filtered', requests: 1 },
  ],
  [
    'that counts its tokens',
    'openai',
    {
      status: 400,
      body: error("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", {
        code: 'context_length_exceeded',
      }),
    },
    { code: 'model_context_too_long' },
  ],
  [
    'with a list of what is wrong',
    'openai',
    {
      status: 422,
      body: { detail: [{ loc: ['body', 'x'], msg: 'extra fields not permitted', type: 'value_error' }] },
    },
    { code: 'model_bad_request', words: 'extra fields' },
  ],
  ['with words in numbers', 'openai', { status: 418, body: 'short and stout' }, { words: 'stout' }],
]
test.each(bad)(
  'an answer %s is an error (%s)',
  async (_, format, answer, { code, requests: asked, words }) => {
    const { call, requests } = await callOf(format, answer)
    const failure = await failureOf(call)
    const seen = JSON.stringify(wholeOf(failure), ['code', 'message', 'detail', 'attempts', 'error', 'what'])
    if (code) expect([failure.code, seen]).toEqual([expect.stringMatching(code), seen])
    if (asked) expect(requests).toBe(asked)
    if (words) expect(seen + wholeOf(failure).message).toContain(words)
  },
)

describe('a stream that is cut', () => {
  const streams: Record<string, string> = {
    openai: data(
      chunk({ role: 'assistant', content: 'Ä' }),
      chunk({ content: '😀' }),
      chunk({ tool_calls: [fn(0, 'c', 'note', '{"a"')] }),
      chunk({ tool_calls: [fn(0, null, null, ':1}')] }),
      chunk({}, 'tool_calls'),
      '[DONE]',
    ),
    'anthropic-messages': data(
      claudeStart,
      ...claudeText(0, 'Ä', '😀'),
      ...claudeCall(1, '{"a"', ':1}'),
      ...claudeEnd('tool_use'),
    ),
    'gemini-generate-content': data(
      gem([{ text: 'Ä' }]),
      gem([{ text: '😀' }]),
      gem([{ functionCall: { name: 'note', args: { a: 1 } } }]),
      gem([{ text: '' }], 'STOP'),
    ),
    'ollama-chat': lines(
      oll({ content: 'Ä' }),
      oll({ content: '😀' }),
      oll({ content: '', tool_calls: [{ function: { name: 'note', arguments: { a: 1 } } }] }),
      oll({ content: '' }, { done: true, done_reason: 'stop' }),
    ),
    'qwen-dashscope': data(
      qwen({ content: 'Ä' }),
      qwen({ content: '😀' }),
      qwen({ content: '', tool_calls: [fn(0, 'c', 'note', '{"a"')] }),
      qwen({ content: '', tool_calls: [fn(0, '', '', ':1}')] }),
      qwen({ content: '' }, 'tool_calls'),
    ),
    'openai-responses': data(
      { type: 'response.output_text.delta', delta: 'Ä' },
      { type: 'response.output_text.delta', delta: '😀' },
      {
        type: 'response.output_item.added',
        output_index: 1,
        item: { type: 'function_call', call_id: 'c', name: 'note', arguments: '' },
      },
      { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"a"' },
      { type: 'response.function_call_arguments.delta', output_index: 1, delta: ':1}' },
      { type: 'response.completed', response: { status: 'completed' } },
    ),
  }
  test.each(Object.entries(streams))('of %s at any byte is whole or an error', async (format, stream) => {
    const bytes = Buffer.from(stream)
    const whole = JSON.stringify(['Ä😀', ['{"a":1}'], 'tool_calls'])
    let size = 0
    await using vendor = await startVendor(() => ({
      headers: { 'content-type': 'text/event-stream' },
      pieces: [bytes.subarray(0, size)],
    }))
    const entry = format === 'openai' ? {} : modelOf(formatOf(format) as never, vendor.url)
    for (size = 0; size < bytes.length; size += 17) {
      const { models } = createMeteredModels({ baseUrl: vendor.url }, entry)
      const outcome = await models.call(ask({ onText: () => {} }), never()).then(
        ({ text, tool_calls, finish }) =>
          JSON.stringify([text, tool_calls.map((one) => one.arguments), finish]),
        (reason: { code: string }) => reason.code,
      )
      expect([size, outcome]).toEqual([
        size,
        expect.toSatisfy((one: string) => one === whole || /^model_(unavailable|bad_reply)$/.test(one)),
      ])
    }
  })
  test.each(Object.entries(streams))('of %s into bytes is read as one', async (format, stream) => {
    const bytes = Buffer.from(stream)
    const pieces = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
    const { call } = await callOf(format, { headers: { 'content-type': 'text/event-stream' }, pieces })
    expect(await call).toMatchObject({ text: 'Ä😀', ...calls(note()) })
  })
})
