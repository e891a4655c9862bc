import { describe, expect, test } from 'vitest'
import { builtInFormats } from '../../../../src/features/response-formats/built-in/built-in-formats.ts'
import type { FormatInput } from '../../../../src/models/schemas/response-format.ts'
import { call, errorOf, modelOf, resultOf } from '../../../support/http-call.ts'
import { startVendor } from '../../../support/http-vendor.ts'

/** What vendors and the gateways before them send beside their formats. */

const formatOf = (name: string): FormatInput =>
  builtInFormats().find((one) => one.name === name) as FormatInput
const receive = async (name: string, body: unknown) => {
  await using vendor = await startVendor(() => ({
    body,
    ...(typeof body === 'string' && { headers: { 'content-type': 'text/event-stream' } }),
  }))
  return await call({ model: modelOf(formatOf(name), `${vendor.url}/v1`), ask: { stream: true } })
}
/** Events with the names that the vendors give them. */
const toEvents = (...events: Record<string, unknown>[]): string =>
  events
    .map((one) => `${'type' in one ? `event: ${one.type}\n` : ''}data: ${JSON.stringify(one)}\n\n`)
    .join('')
const done = 'data: [DONE]\n\n'

const claude = [
  { type: 'message_start', message: { model: 'm', content: [], usage: { input_tokens: 5 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'A' } },
]
const claudeEnd = [{ type: 'message_delta', delta: { stop_reason: 'end_turn' } }, { type: 'message_stop' }]
const message = { type: 'message', content: [{ type: 'output_text', text: 'A' }] }
const note = { type: 'function_call', call_id: 'c', name: 'note', arguments: '{"a":1}' }
const completed = (output: readonly object[]) => ({
  ...{ type: 'response.completed', response: { status: 'completed', output } },
})
const part = (text: string, finishReason?: string) => ({
  candidates: [{ content: { parts: [{ text }] }, ...(finishReason && { finishReason }) }],
})
const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ delta, finish_reason }],
})
const completion = (text: string, finish_reason: string | null = null) => ({
  choices: [{ index: 0, text, finish_reason }],
})

describe('a reply is read', () => {
  const isA = { text: 'A', finish: 'stop' }
  test.each<[title: string, format: string, body: unknown, result: object]>([
    ['up to the end that gateways send', 'anthropic-messages', toEvents(...claude, ...claudeEnd) + done, isA],
    ['up to the end that gateways send', 'gemini-generate-content', toEvents(part('A', 'STOP')) + done, isA],
    [
      'up to the end that gateways send',
      'openai-responses',
      toEvents({ type: 'response.output_text.delta', delta: 'A' }, completed([message])) + done,
      isA,
    ],
    [
      'without empty events',
      'anthropic-messages',
      `data:\n\n${toEvents(claude[0] ?? {}, { type: 'ping' }, ...claude.slice(1), ...claudeEnd)}`,
      isA,
    ],
    ['from its last event alone', 'openai-responses', toEvents(completed([message])), isA],
    [
      'from its last event alone, with a call',
      'openai-responses',
      toEvents(completed([note])),
      { tool_calls: [{ id: 'c', name: 'note', arguments: '{"a":1}' }] },
    ],
    [
      'empty',
      'gemini-generate-content',
      { candidates: [{ content: { role: 'model' }, finishReason: 'STOP' }] },
      { text: '' },
    ],
    ['empty', 'gemini-generate-content', toEvents({ candidates: [{ finishReason: 'STOP' }] }), { text: '' }],
    [
      'empty',
      'openai-chat',
      { choices: [{ message: { role: 'assistant', content: null }, finish_reason: 'stop' }] },
      { text: '' },
    ],
    ['empty', 'openai-chat', toEvents(chunk({ role: 'assistant' }), chunk({}, 'stop')) + done, { text: '' }],
    ['in the shape of completions', 'openai-chat', completion('A', 'stop'), isA],
    ['in the shape of completions, empty', 'openai-chat', completion('', 'stop'), { text: '' }],
    [
      'in chunks of the shape of completions',
      'openai-chat',
      toEvents(completion(''), completion('A'), completion(' noon', 'length')) + done,
      { text: 'A noon', finish: 'length' },
    ],
    [
      'as cut, although a stop follows',
      'gemini-generate-content',
      toEvents(part('A', 'MAX_TOKENS'), part('', 'STOP')),
      { finish: 'length' },
    ],
    [
      'with calls whose index is a text',
      'openai-chat',
      toEvents(
        chunk({
          tool_calls: ['0', '1'].map((index) => ({ index, id: `c${index}`, function: { name: 'note' } })),
        }),
        chunk({ tool_calls: [{ index: '0', function: { arguments: '{"a":1}' } }] }, 'tool_calls'),
      ) + done,
      {
        tool_calls: [
          { id: 'c0', name: 'note', arguments: '{"a":1}' },
          { id: 'c1', name: 'note', arguments: '{}' },
        ],
      },
    ],
    [
      'without the placeholder of a call',
      'openai-chat',
      toEvents(
        chunk({ content: 'A', tool_calls: [{ index: 0, id: null, function: null }] }),
        chunk({}, 'stop'),
      ) + done,
      { ...isA, tool_calls: [] },
    ],
  ])('%s: %s', async (_, format, body, result) => {
    expect(resultOf(await receive(format, body))).toMatchObject(result)
  })
})

describe('an error is one', () => {
  const gone = 'upstream is gone'
  const named = (data: object) => `event: error\ndata: ${JSON.stringify(data)}\n\n`
  test.each<[title: string, format: string, body: unknown, code?: string]>([
    [
      'named so, in the middle',
      'anthropic-messages',
      toEvents(...claude) + named({ message: gone }) + toEvents(...claudeEnd),
    ],
    [
      'in the shape of another vendor',
      'anthropic-messages',
      toEvents(...claude) + named({ error: { message: gone } }) + toEvents(...claudeEnd),
    ],
    [
      'named so, in the middle',
      'openai-responses',
      toEvents({ type: 'response.output_text.delta', delta: 'A' }) + named({ detail: gone }),
    ],
    ['in the shape of another vendor', 'anthropic-messages', { code: 1113, message: gone }],
    [
      'in the shape of another vendor',
      'openai-chat',
      { choices: null, base_resp: { status_code: 1002, status_msg: gone } },
      'model_rate_limited',
    ],
    [
      'in the shape of another vendor',
      'openai-chat',
      toEvents({ base_resp: { status_code: 1002, status_msg: gone } }),
      'model_rate_limited',
    ],
    [
      'in the shape of another vendor',
      'openai-chat',
      { code: 'Throttling', message: gone },
      'model_rate_limited',
    ],
    [
      'of a choice',
      'openai-chat',
      toEvents(chunk({ content: 'A' }), { choices: [{ delta: {}, error: { code: 502, message: gone } }] }) +
        done,
    ],
    [
      'of a choice that ended for it',
      'openai-chat',
      toEvents(chunk({ content: 'A' }), {
        choices: [{ delta: {}, finish_reason: 'error', error: { code: 502, message: gone } }],
      }) + done,
    ],
  ])('%s: %s', async (_, format, body, code) => {
    const { error } = errorOf(await receive(format, body))
    expect(error.code).toMatch(code ?? /^model_(unavailable|rate_limited|unauthorized)$/)
    expect(error.what).toContain(gone)
  })

  test('where the reply breaks off behind a reason at its beginning', async () => {
    const [start, ...rest] = claude
    const early = { ...start, message: { ...start?.message, stop_reason: 'end_turn' } }
    const { error } = errorOf(await receive('anthropic-messages', toEvents(early, ...rest)))
    expect(error.what).toContain('before it was finished')
  })
})
