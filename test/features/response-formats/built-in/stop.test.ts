import { describe, expect, test } from 'vitest'
import { builtInFormats } from '../../../../src/features/response-formats/built-in/built-in-formats.ts'
import { modelOf } from '../../../support/http-call.ts'
import { startVendor } from '../../../support/http-vendor.ts'
import { createMeteredModels } from '../../../support/metered-models.ts'
import { ask, never } from '../../../support/models.ts'

/** Replies that end at a text, over HTTP in the shape of each vendor, which goes on after it and never ends by itself. */

const chat = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
const list = ['<result']
type Shape = { chunk(text: string): object; sent: object | null }
const ofChat: Shape = { chunk: chat, sent: { stop: list } }
const shapes: Readonly<Record<string, Shape>> = {
  'openai-chat': ofChat,
  'deepseek-chat': ofChat,
  'zhipu-chat': ofChat,
  'openai-responses': {
    chunk: (delta) => ({ type: 'response.output_text.delta', item_id: 'm', output_index: 0, delta }),
    // it has no such field
    sent: null,
  },
  'anthropic-messages': {
    chunk: (text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    sent: { stop_sequences: list },
  },
  'gemini-generate-content': {
    chunk: (text) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] }),
    sent: { generationConfig: { stopSequences: list } },
  },
  'ollama-chat': {
    chunk: (content) => ({ model: 'm', message: { role: 'assistant', content }, done: false }),
    sent: { options: { stop: list } },
  },
  'qwen-dashscope': {
    chunk: (content) => ({
      output: { choices: [{ finish_reason: 'null', message: { role: 'assistant', content } }] },
    }),
    sent: { parameters: { stop: list } },
  },
}

const formats = builtInFormats().filter(({ category }) => category === 'text')

describe('a reply that ends at a text', () => {
  test.each(formats.map((format) => [format.name, format] as const))(
    'of %s is cut there, its stream is closed, and it is metered by estimate',
    async (name, format) => {
      const { chunk, sent } = shapes[name] as Shape
      const pieces = ['calls\n<res', 'ult index="0">made up', ' and more'].map((text) => {
        const line = JSON.stringify(chunk(text))
        return format.stream?.format === 'ndjson' ? `${line}\n` : `data: ${line}\n\n`
      })
      await using server = await startVendor(() => ({
        ...{ headers: { 'content-type': 'text/event-stream' }, pieces, ending: 'hang' as const },
      }))
      const { models, settled } = createMeteredModels({ baseUrl: server.url }, modelOf(format, server.url))
      const heard: string[] = []
      const end = { stop: list, watch: () => () => false, continues: () => false }
      const reply = await models.call(ask({ end, onText: (text) => heard.push(text) }), never())
      expect([reply.text, heard.join('')]).toEqual(['calls\n', 'calls\n'])
      expect(reply.cut).toBeGreaterThan(0)
      const [request] = server.requests
      if (sent) expect(request?.body).toMatchObject(sent)
      else expect(request?.text).not.toContain('stop')
      // its vendor sees that no more is read
      await request?.closed
      expect(settled).toMatchObject([{ status: 'succeeded', error_code: null, usage: null }])
      expect(settled[0]?.estimate?.completion_tokens).toBeGreaterThan(0)
    },
  )
})
