import { describe, expect, test } from 'vitest'
import { builtInFormats } from '../../../../src/features/response-formats/built-in/built-in-formats.ts'
import { modelWords, ownText } from '../../../../src/state/provenance.ts'
import { modelOf } from '../../../support/http-call.ts'
import { startVendor, type VendorAnswer } from '../../../support/http-vendor.ts'
import { createMeteredModels } from '../../../support/metered-models.ts'
import { ask, failureOf, never } from '../../../support/models.ts'

/** How replies end, and the digits of their calls, in the shape of each vendor. */

type Shape = {
  /** A whole response that ends for this reason; `args` is JSON text, put in as it is. */
  reply(text: string, finish: string, args?: string): string
  cut: readonly string[]
  failed: readonly string[]
}
const json = (value: unknown, args = ''): string => JSON.stringify(value).replace('"@args"', () => args)
const chatCall = (args: string) => ({
  tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'note', arguments: args } }],
})
const chat: Shape = {
  reply: (content, finish_reason, args) =>
    JSON.stringify({
      choices: [
        { index: 0, message: { role: 'assistant', content, ...(args && chatCall(args)) }, finish_reason },
      ],
    }),
  cut: ['length', 'max_tokens', 'model_length'],
  failed: ['error', 'network_error', 'insufficient_system_resource'],
}
const shapes: Readonly<Record<string, Shape>> = {
  'openai-chat': chat,
  'deepseek-chat': chat,
  'zhipu-chat': { ...chat, cut: ['length', 'model_context_window_exceeded'] },
  'anthropic-messages': {
    reply: (text, stop_reason, args) =>
      json(
        {
          ...{ type: 'message', role: 'assistant', stop_reason },
          content: [
            ...(text ? [{ type: 'text', text }] : []),
            ...(args ? [{ type: 'tool_use', id: 'toolu_1', name: 'note', input: '@args' }] : []),
          ],
        },
        args,
      ),
    cut: ['max_tokens', 'model_context_window_exceeded', 'pause_turn'],
    failed: ['error'],
  },
  'gemini-generate-content': {
    reply: (text, finishReason, args) =>
      json(
        {
          candidates: [
            {
              ...{ index: 0, finishReason },
              content: {
                role: 'model',
                parts: [
                  ...(text ? [{ text }] : []),
                  ...(args ? [{ functionCall: { name: 'note', args: '@args' } }] : []),
                ],
              },
            },
          ],
        },
        args,
      ),
    cut: ['MAX_TOKENS'],
    failed: ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'],
  },
  'ollama-chat': {
    reply: (content, done_reason, args) =>
      json(
        {
          ...{ done: true, done_reason },
          message: {
            ...{ role: 'assistant', content },
            ...(args && { tool_calls: [{ function: { name: 'note', arguments: '@args' } }] }),
          },
        },
        args,
      ),
    cut: ['length'],
    failed: ['error'],
  },
  'qwen-dashscope': {
    reply: (content, finish_reason, args) =>
      JSON.stringify({
        output: {
          choices: [{ finish_reason, message: { role: 'assistant', content, ...(args && chatCall(args)) } }],
        },
      }),
    cut: ['length'],
    failed: ['error'],
  },
}
const formats = builtInFormats().filter(({ name }) => name in shapes)
const rows = formats.map((format) => [format.name, format, shapes[format.name] as Shape] as const)

const answers = (body: string): VendorAnswer => ({
  headers: { 'content-type': 'application/json' },
  body,
})
const callOnce = async (body: string, format: (typeof formats)[number]) => {
  const server = await startVendor(() => answers(body))
  const { models } = createMeteredModels({ baseUrl: server.url }, modelOf(format, server.url))
  return { server, models }
}

describe('a reply', () => {
  test.each(rows)('of %s that was cut is read as cut, with and without calls', async (_, format, shape) => {
    for (const reason of shape.cut)
      for (const args of [undefined, '{"a":1}']) {
        const { server, models } = await callOnce(shape.reply('The ten', reason, args), format)
        await using _server = server
        const { finish } = await models.call(ask(), never())
        expect([reason, finish]).toEqual([reason, 'length'])
      }
  })

  test.each(rows)('of %s that failed is an error', async (_, format, shape) => {
    for (const reason of shape.failed) {
      const { server, models } = await callOnce(shape.reply('The ten', reason), format)
      await using _server = server
      const { code } = await failureOf(models.call(ask(), never()))
      expect([reason, code]).toEqual([reason, expect.stringMatching(/^model_/)])
    }
  })

  test.each(rows)('of %s that ended for an unknown reason says so', async (_, format, shape) => {
    const { server, models } = await callOnce(shape.reply('Noon.', 'MOON_PHASE'), format)
    await using _server = server
    expect(await models.call(ask(), never())).toMatchObject({ text: 'Noon.', finish: 'unknown' })
  })

  test.each(rows)(
    'of %s keeps the digits of its arguments, to the planner and back',
    async (_, format, shape) => {
      const digits = '251229204212100001'
      const { server, models } = await callOnce(shape.reply('', 'stop', `{"id":${digits},"n":1}`), format)
      await using _server = server
      const [made] = (await models.call(ask(), never())).tool_calls
      expect(made?.arguments).toContain(digits)
      const tool_calls = [{ id: 'call_1', name: ownText`note`, arguments: modelWords(made?.arguments ?? '') }]
      const messages = [
        { role: 'user', content: ownText`go` },
        { role: 'assistant', content: ownText``, tool_calls },
        { role: 'tool', content: ownText`noted`, tool_call_id: 'call_1' },
      ] as const
      await models.call(ask({ messages }), never())
      expect(server.requests.at(-1)?.text).toContain(digits)
    },
  )
})

test('a whole message after the events of a format replaces them', async () => {
  const format = formats.find(({ name }) => name === 'openai-chat') as (typeof formats)[number]
  // the whole message may have an id of its own
  const note = (id: string) => [
    { index: 0, id, type: 'function', function: { name: 'note', arguments: '{"a":1}' } },
  ]
  const frames = [
    { choices: [{ index: 0, delta: { content: 'High at ' }, finish_reason: null }] },
    { choices: [{ index: 0, delta: { content: 'noon.', tool_calls: note('c') }, finish_reason: null }] },
    {
      choices: [
        { index: 0, message: { content: 'High at noon.', tool_calls: note('d') }, finish_reason: 'stop' },
      ],
    },
  ]
  await using server = await startVendor(() => ({
    headers: { 'content-type': 'text/event-stream' },
    body: `${frames.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`,
  }))
  const { models } = createMeteredModels({ baseUrl: server.url }, modelOf(format, server.url))
  const reply = await models.call(ask(), never())
  expect([reply.text, reply.tool_calls.map((call) => call.arguments)]).toEqual(['High at noon.', ['{"a":1}']])
})
