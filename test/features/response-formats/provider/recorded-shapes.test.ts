import { describe, expect, it } from 'vitest'
import { anthropicMessages } from '../../../../src/features/response-formats/built-in/anthropic-messages.ts'
import { geminiGenerateContent } from '../../../../src/features/response-formats/built-in/gemini-generate-content.ts'
import { openaiResponses } from '../../../../src/features/response-formats/built-in/openai-responses.ts'
import { testFormat } from '../../../../src/features/response-formats/formats/format-test.ts'
import type { CanonicalResult } from '../../../../src/models/ports/model-ports.ts'
import type { FormatInput } from '../../../../src/models/schemas/response-format.ts'
import { call, errorOf, modelOf, resultOf } from '../../../support/http-call.ts'
import { startVendor } from '../../../support/http-vendor.ts'
import { formatsWithSamples } from '../built-in/samples/formats-with-samples.ts'

/** The answer of a vendor that sends this, over HTTP. */
const receive = async (format: FormatInput, raw: unknown) => {
  const type = format.stream?.format === 'ndjson' ? 'application/x-ndjson' : 'text/event-stream'
  const streamed = typeof raw === 'string'
  await using vendor = await startVendor(() => ({
    body: raw,
    ...(streamed && { headers: { 'content-type': type } }),
  }))
  return await call({ model: modelOf(format, `${vendor.url}/v1`), ask: { stream: streamed } })
}
const toEvents = (...events: object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')

/** Without ids that Mason generated. */
const comparable = ({ tool_calls, ...result }: CanonicalResult) => ({
  ...result,
  tool_calls: tool_calls.map(({ name, arguments: text }) => ({ name, arguments: text })),
})

const chatFormats: FormatInput[] = formatsWithSamples().filter(({ category }) => category === 'text')
const samples = chatFormats.flatMap((format) =>
  format.samples.map(({ raw }, at) => ({ title: `${format.name} ${at}`, format, raw })),
)

describe('a vendor over HTTP', () => {
  it.each(samples)('that answers like sample $title is read like it', async ({ format, raw }) => {
    const received = await receive(format, raw)
    const tested = testFormat(format, raw)
    if (!tested.ok) {
      expect(tested.error).toBeDefined()
      expect(errorOf(received).error.code).not.toBe('model_unreadable_answer')
    } else if (tested.parsed.finish === 'content_filter' && tested.parsed.text === '')
      expect(errorOf(received).error.code).toBe('model_content_filtered')
    else expect(comparable(resultOf(received))).toEqual(comparable(tested.parsed))
  })
})

describe('the samples of a built-in chat format', () => {
  const isCalls = (value: unknown) => Array.isArray(value) && value.length > 0
  it.each(chatFormats)('of $name show every kind of answer', ({ samples }) => {
    const kinds = samples.map(({ raw, expected }) => ({
      whole: typeof raw !== 'string',
      ...expected,
      calls: isCalls(expected.tool_calls),
      text: JSON.stringify(raw),
    }))
    const has = (test: (sample: (typeof kinds)[number] & Record<string, unknown>) => unknown) =>
      kinds.some((sample) => test(sample))
    expect({
      wholeAnswer: has((one) => one.whole && one.usage),
      stream: has((one) => !one.whole && one.usage),
      calls: has((one) => one.whole && one.calls),
      streamedCalls: has((one) => !one.whole && one.calls),
      reasoning: has((one) => one.reasoning),
      error: has((one) => one.error),
      errorInStream: has((one) => one.error && !one.whole),
      withheldOrCutOff: has((one) => one.finish === 'content_filter' || one.finish === 'length'),
      unknownPart: has((one) => /_of_tomorrow|OfTomorrow/.test(one.text)),
    }).toEqual({
      wholeAnswer: true,
      stream: true,
      calls: true,
      streamedCalls: true,
      reasoning: true,
      error: true,
      errorInStream: true,
      withheldOrCutOff: true,
      unknownPart: true,
    })
  })
})

describe("the vendor's own tools", () => {
  it('in a stream of Anthropic are no calls of ours, and the real call after them is', async () => {
    const block = (index: number, content_block: object, partial_json: string) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } },
      { type: 'content_block_stop', index },
    ]
    const raw = toEvents(
      { type: 'message_start', message: { model: 'claude', content: [], usage: { input_tokens: 5 } } },
      ...block(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, '{"query":"x"}'),
      ...block(1, { type: 'tool_use', id: 't', name: 'note', input: {} }, '{"a":1}'),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    )
    const { tool_calls, usage } = resultOf(await receive(anthropicMessages, raw))
    expect(tool_calls).toEqual([{ id: 't', name: 'note', arguments: '{"a":1}' }])
    expect(usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 9 })
  })

  it('alone make an answer in a stream of OpenAI Responses', async () => {
    const raw = toEvents(
      { type: 'response.created', response: { status: 'in_progress', output: [] } },
      { type: 'response.output_item.done', output_index: 0, item: { type: 'web_search_call', id: 'ws' } },
      { type: 'response.completed', response: { status: 'completed', output: [] } },
    )
    expect(resultOf(await receive(openaiResponses, raw))).toMatchObject({ text: '', tool_calls: [] })
  })

  it('are no reason to take a message whose text never came for an empty one', async () => {
    const content = [{ type: 'output_text', text: 'High at noon.' }]
    const raw = toEvents(
      { type: 'response.output_item.done', output_index: 0, item: { type: 'message', content } },
      { type: 'response.completed', response: { status: 'completed', output: [] } },
    )
    expect(errorOf(await receive(openaiResponses, raw)).error.code).toBe('model_unreadable_answer')
  })

  it('cost no text where their picture cannot be read', async () => {
    const output = [
      { type: 'image_generation_call', id: 'ig', result: 'not base64!' },
      { type: 'message', content: [{ type: 'output_text', text: 'A boat.' }] },
    ]
    const result = resultOf(await receive(openaiResponses, { status: 'completed', output }))
    expect(result).toMatchObject({ text: 'A boat.', images: [] })
  })
})

it('a stream of Gemini whose arguments come in parts is refused, not read as a wrong call', async () => {
  const part = (functionCall: object) => ({ candidates: [{ content: { parts: [{ functionCall }] } }] })
  const raw = toEvents(
    part({ name: 'get_weather', willContinue: true }),
    part({ partialArgs: [{ jsonPath: '$.city', stringValue: 'Wick' }], willContinue: true }),
    { candidates: [{ content: { parts: [{ functionCall: {} }] }, finishReason: 'STOP' }] },
  )
  const outcome = errorOf(await receive(geminiGenerateContent, raw))
  expect(outcome).toMatchObject({ place: 'tool_calls', error: { code: 'model_unreadable_answer' } })
  expect(outcome.error.what).toContain('arguments in parts')
})
