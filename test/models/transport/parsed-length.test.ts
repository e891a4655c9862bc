import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { maxBlockingLength } from '../../../src/models/transport/json-parser.ts'
import { ask, never, openTestModels } from '../../support/models.ts'

const content = 'lorem '.repeat(500_000)
const choice = (delta: object) => JSON.stringify({ choices: [{ index: 0, finish_reason: 'stop', ...delta }] })

/** How long a turn of the event loop is depends on the machine; what is parsed in one does not. */
test.each([
  ['a whole answer', 200, 'application/json', choice({ message: { content } })],
  ['an event of a stream', 200, 'text/event-stream', `data: ${choice({ delta: { content } })}\n\n`],
  ['an error', 400, 'application/json', JSON.stringify({ error: { message: content } })],
])('%s of 3 MB is not parsed at once by the thread of the event loop', async (_, status, type, body) => {
  const vendor = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(status, { 'content-type': type }).end(body))
  }).listen(0, '127.0.0.1')
  await once(vendor, 'listening')
  onTestFinished(() => void vendor.close())
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => parse.mockRestore())
  const { port } = vendor.address() as AddressInfo
  const { models } = openTestModels({ baseUrl: `http://127.0.0.1:${port}/v1` })
  const reply = await models.call(ask(), never()).catch((error: Error) => error)
  if (status === 200) expect(reply).toMatchObject({ text: content })
  else expect(reply).toMatchObject({ code: 'model_bad_request' })
  const longest = Math.max(0, ...parse.mock.calls.map(([text]) => String(text).length))
  expect(longest).toBeLessThanOrEqual(maxBlockingLength)
})
