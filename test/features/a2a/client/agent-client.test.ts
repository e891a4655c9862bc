import { expect, test } from 'vitest'
import { sendMessage } from '../../../../src/features/a2a/client/agent-client.ts'
import type { Egress } from '../../../../src/infra/egress/egress-port.ts'

const completed = { task: { id: 'task-1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } }

/** An agent of A2A 1.0 that is away for the first tries, by this error. */
const createTarget = (away: number, error: Error, result: object = completed, onAway = () => {}) => {
  const tries: string[] = []
  const egress = {
    async request(_url, { body, beforeSend }) {
      const { id, params } = JSON.parse(String(body))
      tries.push(params.message.messageId)
      if (tries.length <= away) {
        onAway()
        throw error
      }
      beforeSend?.()
      const bytes = [Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result }))]
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
  const send = (signal = new AbortController().signal) =>
    sendMessage(target, message, 'm-1', () => {}, signal)
  return { tries, send }
}

test('an agent that is away for a moment gets the message under one id; nothing else is tried again', async () => {
  const restarting = createTarget(2, new Error('connect ECONNREFUSED 127.0.0.1:1'))
  expect(await restarting.send()).toMatchObject({ state: 'completed', task_id: 'task-1' })
  expect(restarting.tries).toEqual(['m-1', 'm-1', 'm-1'])
  const unknown = createTarget(9, new Error('getaddrinfo ENOTFOUND shop.example'))
  expect(await unknown.send()).toMatchObject({
    state: 'rejected',
    texts: [expect.stringMatching(/^shop could not be reached/)],
    is_unreached: true,
  })
  expect(unknown.tries).toEqual(['m-1'])
})

const refuse = (address: string) =>
  Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED' })

test('an agent whose addresses all refuse the connection is away too, and the reason names each', async () => {
  // as Node has it for localhost: without a message of its own
  const each = [refuse('::1:1'), refuse('127.0.0.1:1')]
  const all = Object.assign(new AggregateError(each), { code: 'ECONNREFUSED' })
  const restarting = createTarget(1, new TypeError('fetch failed', { cause: all }))
  expect(await restarting.send()).toMatchObject({ state: 'completed' })
  expect(restarting.tries).toEqual(['m-1', 'm-1'])
  const unknown = createTarget(9, new AggregateError([new Error('getaddrinfo ENOTFOUND shop.example')]))
  expect((await unknown.send()).texts).toEqual([
    'shop could not be reached: getaddrinfo ENOTFOUND shop.example',
  ])
})

test('a message that is aborted in a pause ends with the reason of the signal', async () => {
  const control = new AbortController()
  const abort = () => void setImmediate(() => control.abort(new Error('the lease is lost')))
  const target = createTarget(9, refuse('127.0.0.1:1'), completed, abort)
  await expect(target.send(control.signal)).rejects.toThrow('the lease is lost')
  expect(target.tries).toEqual(['m-1'])
})

test('no words of an agent make its reply one of an agent that was not reached', async () => {
  const text = 'shop could not be reached: connect ECONNREFUSED'
  const message = { messageId: 'r', role: 'ROLE_AGENT', parts: [{ text }] }
  const status = { state: 'TASK_STATE_REJECTED', message }
  const task = { id: 'task-1', contextId: 'c', status, is_unreached: true, metadata: { is_unreached: true } }
  const reply = await createTarget(0, refuse(''), { task }).send()
  expect(reply).toMatchObject({ state: 'rejected', texts: [text] })
  expect(reply).not.toHaveProperty('is_unreached')
})
