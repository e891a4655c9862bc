import { describe, expect, test } from 'vitest'
import { anthropicMessages } from '../../../../src/features/response-formats/built-in/anthropic-messages.ts'
import { geminiGenerateContent } from '../../../../src/features/response-formats/built-in/gemini-generate-content.ts'
import { openaiChat } from '../../../../src/features/response-formats/built-in/openai-chat.ts'
import { call, modelOf, resultOf } from '../../../support/http-call.ts'
import { startVendor } from '../../../support/http-vendor.ts'

/** Digits in arguments of calls, from a vendor and back to it. */

const args =
  '{"id":251229204212100001,"minus":-987654321098765432,"list":[12345678901234567890],"huge":1e400,"zero":-0,' +
  '"float":0.12345678901234567890123,"text":"{\\"id\\":251229204212100002,\\"x\\":1e400}","in":{"id":251229204212100003}}'
const digits = [
  ...['251229204212100001', '-987654321098765432', '12345678901234567890', '1e400', '251229204212100002'],
  ...['251229204212100003', '0.1234567890123456'],
]
const tools = [{ name: 'find', description: 'Finds', parameters: { type: 'object' } }]

const openai = (text: string) =>
  `{"index":0,"id":"a","type":"function","function":{"name":"find","arguments":${text}}}`
const anthropic = `{"type":"tool_use","id":"a","name":"find","input":${args}}`
const gemini = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"find","args":${args}}}]},"finishReason":"STOP"}]}`
const shapes = [
  [
    'OpenAI',
    openaiChat,
    `{"choices":[{"message":{"role":"assistant","tool_calls":[${openai(JSON.stringify(args))}]},"finish_reason":"tool_calls"}]}`,
    `data: {"choices":[{"delta":{"tool_calls":[${openai(JSON.stringify(args))}]},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n`,
  ],
  [
    'OpenAI, as an object',
    openaiChat,
    `{"choices":[{"message":{"role":"assistant","tool_calls":[${openai(args)}]},"finish_reason":"tool_calls"}]}`,
    `data: {"choices":[{"delta":{"tool_calls":[${openai(args)}]},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n`,
  ],
  [
    'Anthropic',
    anthropicMessages,
    `{"type":"message","content":[${anthropic}],"stop_reason":"tool_use"}`,
    `data: {"type":"content_block_start","index":0,"content_block":${anthropic}}\n\n` +
      'data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n',
  ],
  ['Gemini', geminiGenerateContent, gemini, `data: ${gemini}\n\n`],
] as const

describe.each(shapes)('arguments of calls in the shape of %s', (_, format, whole, events) => {
  test('have the digits that the vendor sent, whole and as a stream, and go back with them', async () => {
    for (const stream of [false, true]) {
      await using vendor = await startVendor(() => ({ body: stream ? events : whole }))
      const model = modelOf(format, vendor.url)
      const { tool_calls } = resultOf(await call({ model, ask: { tools, stream } }))
      expect(digits.filter((one) => !tool_calls[0]?.arguments.includes(one))).toEqual([])
      for (const said of [args, tool_calls[0]?.arguments ?? '']) {
        const messages = [
          { role: 'user' as const, content: 'x' },
          {
            role: 'assistant' as const,
            content: '',
            tool_calls: [{ id: 'a', name: 'find', arguments: said }],
          },
          { role: 'tool' as const, tool_call_id: 'a', content: args },
        ]
        await call({ model, ask: { tools, messages, stream } })
        const sent = vendor.requests.at(-1)?.text ?? ''
        const call2 = sent.slice(0, sent.lastIndexOf('251229204212100001'))
        expect(digits.filter((one) => !call2.includes(one))).toEqual([])
      }
    }
  })
})
