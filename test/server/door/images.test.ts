import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DoorServer, startDoor } from '../../support/door-server.ts'

let door: DoorServer
beforeAll(async () => {
  door = await startDoor()
})
afterAll(() => door[Symbol.asyncDispose]())

const bytes = Buffer.from(Array.from({ length: 1000 }, (_, n) => (n * 31) % 256))
const show = (url: string) =>
  door.client().chat.completions.create({
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
  door.vendor.script({ '*': [{ text: 'A dog.' }] })
  const answer = await show(`data:image/png;base64,${bytes.toString('base64')}`)
  expect(answer.choices[0]?.message.content).toBe('A dog.')
  const [request] = door.vendor.requests()
  const [, image] = (request?.messages[0]?.content ?? []) as { image_url?: { url: string } }[]
  expect(Buffer.from(image?.image_url?.url.split(',')[1] ?? '', 'base64').equals(bytes)).toBe(true)
})

test('an address is refused before anybody is asked', async () => {
  const before = door.vendor.requests().length
  const refused = await show('https://a.example/dog.png').catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(OpenAI.BadRequestError)
  expect(refused).toMatchObject({
    param: 'messages[0].content[1].image_url.url',
    message: expect.stringContaining('must be a data: URL of an image'),
  })
  expect(door.vendor.requests()).toHaveLength(before)
})
