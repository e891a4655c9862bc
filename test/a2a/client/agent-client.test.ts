import { expect, test } from 'vitest'
import { sendMessage } from '../../../src/a2a/client/agent-client.ts'
import type { Egress } from '../../../src/infra/egress/egress-port.ts'

/** An agent of A2A 1.0 that is away for the first tries, by this error. */
const createTarget = (away: number, error: string) => {
  const tries: string[] = []
  const egress = {
    async request(_url, { body, beforeSend }) {
      const { id, params } = JSON.parse(String(body))
      tries.push(params.message.messageId)
      if (tries.length <= away) throw new Error(error)
      beforeSend?.()
      const task = { id: 'task-1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }
      const bytes = [Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: { task } }))]
      const read = async () => bytes.shift() ?? null
      return {
        status: 200,
        headers: new Headers({ 'content-type': 'application/json' }),
        body: { read, cancel() {} },
      }
    },
  } as Partial<Egress> as Egress
  const supportedInterfaces = [
    { url: 'http://shop.example/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  ]
  const row = { name: 'shop', roles: [], allow_private: true, card: { name: 'shop', supportedInterfaces } }
  const target = { row, headers: {}, egress, redact: (text: string) => text, pushUrl: null } as never
  const message = { agent: 'shop', parts: [{ text: 'Hello' }] }
  return { tries, send: () => sendMessage(target, message, 'm-1', () => {}, new AbortController().signal) }
}

test('an agent that is away for a moment gets the message under one id; nothing else is tried again', async () => {
  const restarting = createTarget(2, 'connect ECONNREFUSED 127.0.0.1:1')
  expect(await restarting.send()).toMatchObject({ state: 'completed', task_id: 'task-1' })
  expect(restarting.tries).toEqual(['m-1', 'm-1', 'm-1'])
  const unknown = createTarget(9, 'getaddrinfo ENOTFOUND shop.example')
  expect(await unknown.send()).toMatchObject({
    state: 'rejected',
    texts: [expect.stringMatching(/^shop could not be reached/)],
  })
  expect(unknown.tries).toEqual(['m-1'])
})
