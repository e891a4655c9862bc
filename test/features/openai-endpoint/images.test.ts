import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OpenAIServer, startOpenAIServer } from '../../support/openai-api-server.ts'

let endpoint: OpenAIServer
beforeAll(async () => {
  endpoint = await startOpenAIServer()
})
afterAll(() => endpoint[Symbol.asyncDispose]())

const bytes = Buffer.from(Array.from({ length: 1000 }, (_, n) => (n * 31) % 256))
const show = (url: string) =>
  endpoint.client().chat.completions.create({
    model: 'seeing/eye:1',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  })

test('an image as a data: URL reaches the vendor byte for byte', async () => {
  endpoint.vendor.script({ '*': [{ text: 'A dog.' }] })
  const answer = await show(`data:image/png;base64,${bytes.toString('base64')}`)
  expect(answer.choices[0]?.message.content).toBe('A dog.')
  const [request] = endpoint.vendor.requests()
  const [, image] = (request?.messages[0]?.content ?? []) as { image_url?: { url: string } }[]
  expect(Buffer.from(image?.image_url?.url.split(',')[1] ?? '', 'base64').equals(bytes)).toBe(true)
})

test('an image by address is refused before any vendor is called', async () => {
  const before = endpoint.vendor.requests().length
  const refused = await show('https://a.example/dog.png').catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(OpenAI.BadRequestError)
  expect(refused).toMatchObject({
    param: 'messages[0].content[1].image_url.url',
    message: expect.stringContaining('must be a data: URL of an image'),
  })
  expect(endpoint.vendor.requests()).toHaveLength(before)
})
