import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createPeers } from '../../examples/ap2/peers.ts'

/** What an HTTP server says that has just started again, or is about to end. */
const away = [500, { statusCode: 500, error: 'Internal Server Error', message: 'not ready' }] as const

test('a peer that answers with an error of HTTP has refused nothing: the message is sent again under its id', async () => {
  const received: { messageId: string }[] = []
  const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }
  const card = { supportedInterfaces: [{ url: '/a2a', protocolVersion: '1.0' }] }
  const replies = {
    GET: [away, [200, card], [200, card]],
    POST: [away, [200, { jsonrpc: '2.0', id: 1, result: { task } }]],
  } as Record<string, (readonly [number, object])[]>
  const server = createServer(async (request, response) => {
    const { method = '', headers } = request
    const [status, body] = replies[method]?.shift() ?? [200, {}]
    let text = ''
    for await (const chunk of request) text += String(chunk)
    if (method === 'POST') received.push(JSON.parse(text).params.message)
    response.writeHead(status).end(JSON.stringify(body).replace('"/a2a"', `"http://${headers.host}/a2a"`))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const call = createPeers('Merchant')
  const { port } = server.address() as AddressInfo
  const parts = [{ text: 'initiate_payment' }]
  const reply = await call(`http://127.0.0.1:${port}/`, { key: 'pay', contextId: 'c', parts })
  expect(reply).toMatchObject({ state: 'completed', task_id: 't' })
  expect(received.map(({ messageId }) => messageId)).toEqual([received[0]?.messageId, received[0]?.messageId])
})
