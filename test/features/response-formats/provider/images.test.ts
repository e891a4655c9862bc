import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { CanonicalMessage } from '../../../../src/models/ports/model-ports.ts'
import { call, errorOf, modelOf, resultOf } from '../../../support/http-call.ts'
import { startVendor } from '../../../support/http-vendor.ts'
import { chatVendors } from './chat-vendors.ts'

/** Bytes that a vendor must get as they are. */
const bytes = Buffer.from(Array.from({ length: 300 }, (_, n) => (n * 7) % 256))
const url = `data:image/png;base64,${bytes.toString('base64')}`
const sha = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')
const asking = (address: string): CanonicalMessage[] => [
  { role: 'system', content: 'You look.' },
  {
    role: 'user',
    content: [
      { type: 'image_url', image_url: { url: address } },
      { type: 'text', text: 'What is it?' },
    ],
  },
]
const vendorOf = (name: string) => {
  const vendor = chatVendors.find((one) => one.name === name)
  if (vendor) return vendor
  throw new Error(`there is no vendor ${name}`)
}

/** Where each vendor has its image: the part, with the bytes left out, and the bytes. */
const question = { type: 'text', text: 'What is it?' }
const openai = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }, question]
const shapes: Record<string, { messages: (body: never) => unknown; wanted: unknown }> = {
  'openai-chat': {
    messages: (body: { messages: unknown[] }) => body.messages[1],
    wanted: { role: 'user', content: openai },
  },
  'zhipu-chat': {
    messages: (body: { messages: unknown[] }) => body.messages[1],
    wanted: { role: 'user', content: openai },
  },
  'openai-responses': {
    messages: (body: { input: unknown }) => body.input,
    wanted: [
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: 'data:image/png;base64,', detail: 'auto' },
          { type: 'input_text', text: 'What is it?' },
        ],
      },
    ],
  },
  'anthropic-messages': {
    messages: (body: { messages: unknown }) => body.messages,
    wanted: [
      {
        role: 'user',
        content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } }, question],
      },
    ],
  },
  'gemini-generate-content': {
    messages: (body: { contents: unknown }) => body.contents,
    wanted: [
      { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: '' } }, { text: 'What is it?' }] },
    ],
  },
  'ollama-chat': {
    messages: (body: { messages: unknown[] }) => body.messages[1],
    wanted: { role: 'user', content: 'What is it?', images: [''] },
  },
  'qwen-dashscope': {
    messages: (body: { input: { messages: unknown } }) => body.input.messages,
    wanted: [
      { role: 'system', content: [{ text: 'You look.' }] },
      { role: 'user', content: [{ image: 'data:image/png;base64,' }, { text: 'What is it?' }] },
    ],
  },
}

describe('an image in the words of each vendor', () => {
  it.each(Object.entries(shapes))('%s gets its bytes, whole', async (name, { messages, wanted }) => {
    const vendor = vendorOf(name)
    await using server = await startVendor(() => vendor.answer(false, true))
    const called = await call({ model: modelOf(vendor.format, server.url), ask: { messages: asking(url) } })
    expect(resultOf(called).text).toBe('It is 7 degrees.')
    const [request] = server.requests
    const found = /[A-Za-z0-9+/]{400}={0,2}/.exec(request?.text ?? '')?.[0] ?? ''
    expect(sha(Buffer.from(found, 'base64'))).toBe(sha(bytes))
    expect(messages(JSON.parse(request?.text.replace(found, '') ?? '') as never)).toEqual(wanted)
    if (name === 'qwen-dashscope')
      expect(request?.path).toBe('/services/aigc/multimodal-generation/generation')
  })

  it('DashScope streams what it sees as lists of parts', async () => {
    const part = (content: object[], finish_reason: string) => ({
      output: { choices: [{ finish_reason, message: { role: 'assistant', content } }] },
      usage: { input_tokens: 20, output_tokens: 5 },
    })
    const events = [part([{ text: 'A d' }], 'null'), part([{ text: 'og.' }], 'null'), part([], 'stop')]
    await using server = await startVendor(() => ({
      headers: { 'content-type': 'text/event-stream' },
      pieces: events.map((event) => `data:${JSON.stringify(event)}\n\n`),
    }))
    const model = modelOf(vendorOf('qwen-dashscope').format, server.url)
    const called = await call({ model, ask: { messages: asking(url), stream: true } })
    expect(resultOf(called)).toMatchObject({ text: 'A dog.', finish: 'stop' })
  })

  it.each([
    ['deepseek-chat', url, 'takes no images'],
    ['ollama-chat', 'https://a.example/1.png', 'takes no images by their address, only data: ones'],
  ])('%s is not asked about what it would not get', async (name, address, why) => {
    const vendor = vendorOf(name)
    await using server = await startVendor(() => vendor.answer(false, true))
    const called = await call({
      model: modelOf(vendor.format, server.url),
      ask: { messages: asking(address) },
    })
    expect(errorOf(called).error).toMatchObject({ code: 'model_bad_request', retry: false })
    expect(errorOf(called).error.what).toBe(`was not asked: its response format, at /body: ${why}`)
    expect(server.requests).toHaveLength(0)
  })
})
