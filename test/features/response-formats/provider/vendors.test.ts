import { describe, expect, it } from 'vitest'
import type { CanonicalMessage, CanonicalRequest } from '../../../../src/models/ports/model-ports.ts'
import { call, canary, errorOf, keyOf, modelOf, resultOf } from '../../../support/http-call.ts'
import { startVendor } from '../../../support/http-vendor.ts'
import { chatVendors } from './chat-vendors.ts'

const tools: CanonicalRequest['tools'] = [
  {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
  },
]
const opening: CanonicalMessage[] = [
  { role: 'system', content: 'You plan.' },
  { role: 'user', content: 'How is Oslo?' },
]
const ways = chatVendors.flatMap((vendor) => [
  { vendor, name: vendor.name, streamed: false, way: 'whole' },
  { vendor, name: vendor.name, streamed: true, way: 'streamed' },
])

describe('a vendor that takes nothing but its own shape', () => {
  it.each(ways)('$name, $way: two turns with a tool come out alike', async ({ vendor, streamed }) => {
    await using server = await startVendor((request, nth) => {
      expect(request.headers[vendor.keyHeader]).toContain(canary)
      expect(request.text).not.toContain(canary)
      vendor.check(request, streamed, nth - 1)
      return vendor.answer(streamed, nth === 2)
    })
    const model = modelOf(vendor.format, server.url)
    const common = { tools, stream: streamed, parameters: { temperature: 0.5, max_tokens: 100 } }

    const first = await call({ model, ask: { ...common, messages: opening } })
    const called = resultOf(first)
    expect(called).toMatchObject({
      text: 'One moment.',
      tool_calls: [{ id: expect.stringMatching(/^[\w-]{4,40}$/), name: 'get_weather' }],
      finish: 'tool_calls',
      usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 },
    })
    expect(JSON.parse(called.tool_calls[0]?.arguments ?? '')).toEqual({ city: 'Oslo' })
    expect(first.deltas.map(({ text }) => text)).toEqual(streamed ? ['One ', 'moment.'] : ['One moment.'])

    const calls = called.tool_calls.map((one) => ({ ...one, id: 'call_1' }))
    const messages: CanonicalMessage[] = [
      ...opening,
      { role: 'assistant', content: called.text, tool_calls: calls },
      { role: 'tool', tool_call_id: 'call_1', content: '7 degrees' },
    ]
    const second = resultOf(await call({ model, ask: { ...common, messages } }))
    expect(second).toMatchObject({ text: 'It is 7 degrees.', tool_calls: [], finish: 'stop' })
    expect(server.requests).toHaveLength(2)

    // what is not its shape it refuses, or nothing of all this would mean anything
    const other = { ...common, messages: opening, parameters: { ...common.parameters, temperature: 0.7 } }
    expect(errorOf(await call({ model, ask: other })).error.code).toBe('model_bad_request')
  })

  it.each([
    ['deepseek-chat', 'why', 'why'],
    ['deepseek-chat', null, ''],
    ['zhipu-chat', 'why', 'why'],
    ['zhipu-chat', null, undefined],
  ])('%s is given what was thought before calls (%j) as %j', async (name, text, sent) => {
    const vendor = chatVendors.find((one) => one.name === name)
    if (vendor === undefined) throw new Error('there is no such vendor')
    await using server = await startVendor((request) => {
      const { messages } = request.body as { messages: { role: string; reasoning_content?: string }[] }
      const said = messages.map(({ role, reasoning_content }) => [role, reasoning_content])
      expect(said).toEqual([
        ...opening.map(({ role }) => [role, undefined]),
        ['assistant', sent],
        ['tool', undefined],
      ])
      return vendor.answer(false, true)
    })
    const messages: CanonicalMessage[] = [
      ...opening,
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'call_1', name: 'get_weather', arguments: '{}' }],
        ...(text !== null && { reasoning: { text, by: 'm' } }),
      },
      { role: 'tool', tool_call_id: 'call_1', content: '7 degrees' },
    ]
    resultOf(await call({ model: modelOf(vendor.format, server.url), ask: { tools, messages } }))
  })

  it.each(chatVendors)('$name gets no key where there is none', async (vendor) => {
    await using server = await startVendor((request) => {
      expect(request.headers.authorization).toBeUndefined()
      expect(request.headers[vendor.keyHeader]).toBeUndefined()
      expect(request.headers['x-own']).toBeUndefined()
      return vendor.answer(false, true)
    })
    const common = { tools, parameters: { temperature: 0.5, max_tokens: 100 }, messages: opening }
    const model = modelOf(vendor.format, server.url, { headers: { 'X-Own': 'Key {{key}}' } })
    const called = await call({ model, key: keyOf(null), ask: common })
    expect(resultOf(called).text).toBe('It is 7 degrees.')
  })

  it('gets the key where its endpoint says, and then nowhere else', async () => {
    const [vendor] = chatVendors
    if (vendor === undefined) throw new Error('there is no vendor')
    await using server = await startVendor((request) => {
      expect(request.headers).toMatchObject({
        'x-own': `Key ${canary}`,
        'x-mason-role': 'planner',
        'x-fixed': '1',
      })
      expect(request.headers.authorization).toBeUndefined()
      return vendor.answer(false, true)
    })
    const headers = { 'X-Own': 'Key {{key}}', 'X-Fixed': '1' }
    resultOf(await call({ model: modelOf(vendor.format, server.url, { headers }) }))
  })
})
