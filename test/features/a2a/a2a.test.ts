// backends: either

import { randomBytes, randomUUID } from 'node:crypto'
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk'
import { flattenedVerify } from 'jose'
import { describe, expect, onTestFinished } from 'vitest'
import { agentCardsRef } from '../../../src/features/a2a/a2a.ref.ts'
import { signNextCard } from '../../../src/features/a2a/server/card-signatures.ts'
import { toCanonicalJson } from '../../../src/features/canonical-json.ts'
import { createCardSigner } from '../../../src/features/payments/executor/card-signer.ts'
import { openPaymentKeys } from '../../../src/features/payments/keys/payment-keys.ts'
import { webhooksRef } from '../../../src/features/webhooks/webhooks.ref.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { openPeer, openPeer03, type Peer } from '../../support/a2a-peers.ts'
import { unique } from '../../support/backend.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { openExecutorDatabase } from '../../support/payments.ts'
import { count, readContent, until } from '../../support/runs.ts'
import { isSignedBy, startWebhookReceiver } from '../../support/webhook-receiver.ts'

const card = {
  name: 'Coffee shop',
  description: 'Sells coffee makers',
  skills: [{ id: 'search_catalog', name: 'Search', description: 'Finds products', tags: ['shop'] }],
}
const ap2 = 'https://github.com/google-agentic-commerce/ap2/tree/v0.1'
const ap2OfSamples = 'https://github.com/google-agentic-commerce/ap2/v1'

const test = runtimeTest
  .extend('merchant', { scope: 'file' }, async ({ runtime }) => {
    const business = unique('merchant')
    await runtime.features
      .get(agentCardsRef)
      .put(business, { ...card, version: '1.0.0', roles: ['merchant'] })
    return business
  })
  .extend('shop', { scope: 'file' }, async ({ runtime }) => {
    const business = unique('shop')
    await runtime.features.get(agentCardsRef).put(business, { ...card, version: '1.0.0', roles: [] })
    return business
  })
  .extend(
    'receiver',
    { scope: 'file' },
    closing(() => startWebhookReceiver()),
  )
  .extend(
    'newToken',
    { scope: 'file' },
    ({ runtime }) =>
      async (business_id: string) =>
        (await runtime.admin.tokens.create({}, { business_id, label: 'x', roles: ['agent'] })).token,
  )
  /** Opens a peer with a token of its own; it calls the server of the test whatever its card says. */
  .extend(
    'open',
    { scope: 'file' },
    ({ server, runtime, newToken }) =>
      async (
        kind: Kind,
        business: string,
        options: { extensions?: string[]; token?: string } = {},
      ): Promise<Peer> => {
        const { token = await newToken(business), extensions = [] } = options
        const fetchImpl: typeof fetch = (input, init = {}) => {
          const headers = new Headers(init.headers)
          headers.set('authorization', `Bearer ${token}`)
          // without it the card is that of 1.0
          if (kind.version === '0.3') headers.set('a2a-version', '0.3')
          return fetch(String(input).replace(runtime.publicOrigin, server.url), { ...init, headers })
        }
        const cardUrl = `${server.url}/a2a/agents/${business}/`
        return kind.version === '1.0'
          ? openPeer(kind.transport, { cardUrl, fetchImpl, extensions })
          : openPeer03(kind.transport, { cardUrl, fetchImpl, extensions })
      },
  )

test.beforeEach(({ model }) => model.reset())

type Kind = { version: '1.0' | '0.3'; transport: 'JSONRPC' | 'HTTP+JSON' }
const kinds: Kind[] = (['1.0', '0.3'] as const).flatMap((version) =>
  (['JSONRPC', 'HTTP+JSON'] as const).map((transport) => ({ version, transport })),
)
const ask = { name: 'ask_user', arguments: { question: 'Which colour?', options: ['red', 'blue'] } }
const newMessage = (text: string, more: object = {}) => ({ messageId: randomUUID(), text, ...more })

/** Clients of 0.3 have words of their own for the codes of errors. */
const noSuchTask = /there is no task|Task not found/

describe.each(kinds)('an agent of protocol $version by $transport', (kind) => {
  test('gets the answer of a run, and the same run for the same message', async ({
    open,
    shop,
    model,
    database,
  }) => {
    model.script({ planner: [{ text: 'Two are late.' }] } as never)
    const peer = await open(kind, shop)
    const message = newMessage('Which orders are late?', { contextId: 'our talk, number 1 ☕' })
    const task = await peer.send(message)
    expect(task).toMatchObject({
      state: 'completed',
      contextId: 'our talk, number 1 ☕',
      answer: expect.stringMatching(/./),
    })
    expect(await peer.send(message)).toEqual(task)
    expect(await peer.get(task.id)).toEqual(task)
    expect(await count(database, 'runs WHERE run_id = $1', [task.id])).toBe(1)
    const { id } = await peer.send(newMessage('And which are early?', { contextId: task.contextId }))
    const turns = 'runs a JOIN runs b USING (tenant, session_id) WHERE a.run_id = $1 AND b.run_id = $2'
    expect(await count(database, turns, [task.id, id])).toBe(1)
  })

  test('answers a question; the same answer sent twice counts once', async ({
    open,
    shop,
    model,
    database,
  }) => {
    model.script({
      planner: [{ tool_calls: [ask] }, { tool_calls: [ask] }, { text: 'Blue it is.' }],
    } as never)
    const peer = await open(kind, shop)
    const asked = await peer.send(newMessage('Paint it'))
    expect(asked).toMatchObject({ state: 'input-required', says: 'Which colour?' })
    expect(asked.data).toMatchObject([{ input_request: { options: ['red', 'blue'] } }])
    const wrong = await peer.send(newMessage('green', { taskId: asked.id })).catch((error: Error) => error)
    expect(String(wrong)).toContain('answer')
    const answer = newMessage('blue', { taskId: asked.id })
    const again = await peer.send(answer)
    expect(again).toMatchObject({ id: asked.id, contextId: asked.contextId, state: 'input-required' })
    // a second question is open: the first answer, sent again, is not its answer
    expect(await peer.send(answer)).toMatchObject({ state: 'input-required' })
    expect(
      await count(database, 'input_requests WHERE run_id = $1 AND answered_at IS NULL', [asked.id]),
    ).toBe(1)
    expect(await peer.send(newMessage('red', { taskId: asked.id }))).toMatchObject({ state: 'completed' })
    const ended = await peer.send(newMessage('more', { taskId: asked.id })).catch((error: Error) => error)
    expect(String(ended)).toMatch(/has ended|UnsupportedOperation/)
  })

  test('streams the states and the answer of a run', async ({ open, shop, model }) => {
    model.script({ planner: [{ text: 'Two are late.' }] } as never)
    const peer = await open(kind, shop)
    const { states, text, id } = await peer.stream(newMessage('Which orders are late?'))
    expect(['submitted', 'working']).toContain(states[0])
    expect(states.at(-1)).toBe('completed')
    expect(text).toBe((await peer.get(id)).answer)
    await expect(peer.resubscribe(id).next()).rejects.toThrow(/has ended|not supported/)
  })

  test('follows a task again, and cancels it; one that has ended cannot be cancelled', async ({
    open,
    shop,
    model,
  }) => {
    model.script({ planner: [{ tool_calls: [ask] }, { text: 'Hello.' }] } as never)
    const peer = await open(kind, shop)
    const { id } = await peer.send(newMessage('Paint it'))
    const states = peer.resubscribe(id)
    expect((await states.next()).value).toBe('input-required')
    expect(await peer.cancel(id)).toMatchObject({ id, state: 'canceled' })
    expect((await states.next()).value).toBe('canceled')
    expect((await states.next()).done).toBe(true)
    expect(await peer.cancel(id)).toMatchObject({ state: 'canceled' })
    const { id: completed } = await peer.send(newMessage('Hello'))
    await expect(peer.cancel(completed)).rejects.toThrow()
  })

  test('finds no task of another caller, also where both use one context id', async ({
    open,
    shop,
    database,
  }) => {
    const [one, other] = [await open(kind, shop), await open(kind, shop)]
    const contextId = unique('context')
    const task = await one.send(newMessage('Hello', { contextId }))
    await expect(other.get(task.id)).rejects.toThrow(noSuchTask)
    await expect(other.cancel(task.id)).rejects.toThrow(noSuchTask)
    await expect(other.send(newMessage('Hi', { taskId: task.id }))).rejects.toThrow(noSuchTask)
    const theirs = await other.send(newMessage('Hello', { contextId }))
    const shared = 'runs a JOIN runs b USING (tenant, session_id) WHERE a.run_id = $1 AND b.run_id = $2'
    expect(await count(database, shared, [task.id, theirs.id])).toBe(0)
  })

  test('must ask for the extension that a merchant requires, under any of its names', async ({
    open,
    merchant,
    runtime,
  }) => {
    const without = await open(kind, merchant)
    await expect(without.send(newMessage('Hello'))).rejects.toThrow(/requires an extension/)
    for (const uri of [ap2, ap2OfSamples]) {
      const peer = await open(kind, merchant, { extensions: [uri, 'https://unknown.example/ext'] })
      const { id, state } = await peer.send(newMessage('Hello'))
      expect(state).toBe('completed')
      expect((await runtime.of(merchant).run(id))?.metadata['a2a.extensions']).toBe(uri)
    }
  })

  test('sends data, which the run has as files; without text its keys are the prompt', async ({
    open,
    shop,
    runtime,
  }) => {
    const peer = await open(kind, shop)
    const intent = { 'ap2.mandates.IntentMandate': { skus: null, price: 249 } }
    const { id } = await peer.send({ messageId: randomUUID(), data: [intent, { risk_data: 'x' }] })
    expect(await runtime.of(shop).run(id)).toMatchObject({ prompt: 'ap2.mandates.IntentMandate, risk_data' })
    const files = (await runtime.stateOf(id, shop)).origin_files
    expect(files.map(({ name }) => name)).toEqual(['1-ap2.mandates.IntentMandate.json', '2-risk_data.json'])
    const [, sha256 = ''] = files[0]?.local_path.split(':') ?? []
    const bytes = await readContent(await runtime.of(shop).blob(id, sha256))
    expect(JSON.parse(String(bytes))).toEqual(intent)
  })
})

describe.each(kinds)('pushes of protocol $version by $transport', (kind) => {
  test('reach the address with its token and credentials, signed as webhooks, each event once', async ({
    open,
    runtime,
    shop,
    model,
    receiver,
  }) => {
    const { settings } = runtime.features.get(webhooksRef)
    await settings.change(shop, { allow_private: true })
    const secret = (await settings.rotate(shop))?.secret ?? ''
    model.script({ planner: [{ tool_calls: [ask] }, { text: 'Blue it is.' }] } as never)
    const peer = await open(kind, shop)
    const { id, contextId } = await peer.send(newMessage('Paint it'))
    const path = `/${unique('push')}`
    const config = {
      id: 'one',
      url: receiver.url + path,
      token: unique('token'),
      scheme: 'Bearer',
      credentials: 'abc',
    }
    await peer.push(id, config)
    await peer.push(id, { ...config, id: 'two', url: `${receiver.url}/removed` })
    expect(await peer.pushes(id)).toEqual([config.url, `${receiver.url}/removed`])
    await until(
      'the question was pushed',
      () => receiver.of('/removed').some(({ text }) => text.includes(id)) && receiver.of(path).length === 1,
    )
    await peer.unpush(id, 'two')
    await peer.send(newMessage('blue', { taskId: id }))
    await until('the end was pushed', () => receiver.of(path).length === 2)
    const [asked, ended] = receiver.of(path)
    const [state, says] =
      kind.version === '1.0'
        ? [asked?.body.statusUpdate.status.state, asked?.body.statusUpdate.status.message.parts[0].text]
        : [asked?.body.status.state, asked?.body.status.message.parts[0].text]
    expect([state, says]).toEqual([
      kind.version === '1.0' ? 'TASK_STATE_INPUT_REQUIRED' : 'input-required',
      'Which colour?',
    ])
    expect(ended?.body).toMatchObject(
      kind.version === '1.0'
        ? { statusUpdate: { taskId: id, contextId, status: { state: 'TASK_STATE_COMPLETED' } } }
        : { kind: 'task', id, contextId, status: { state: 'completed' } },
    )
    for (const push of [asked, ended]) {
      expect(push?.headers).toMatchObject({
        'x-a2a-notification-token': config.token,
        authorization: 'Bearer abc',
      })
      expect(push && isSignedBy(secret, push)).toBe(true)
    }
    // of a task that has ended before: what became of it
    await peer.push(id, { ...config, id: 'late', url: `${config.url}-late` })
    await until('the end was pushed again', () => receiver.of(`${path}-late`).length === 1)
    expect(receiver.of('/removed').filter(({ text }) => text.includes(id))).toHaveLength(1)
    expect(receiver.of(path)).toHaveLength(2)
  })

  test('are refused for private addresses, another caller, an id that is not stored as it is and an eleventh address', async ({
    open,
    shop,
    runtime,
  }) => {
    await runtime.features.get(webhooksRef).settings.change(shop, { allow_private: false })
    const [peer, other] = [await open(kind, shop), await open(kind, shop)]
    const { id } = await peer.send(newMessage('Hello'))
    const config = {
      id: 'a',
      url: 'https://agent.example/push',
      token: 't',
      scheme: 'Bearer',
      credentials: 'x',
    }
    await expect(peer.push(id, { ...config, url: 'http://127.0.0.1/push' })).rejects.toThrow(/url/)
    await expect(peer.push(id, { ...config, credentials: 'x\ny' })).rejects.toThrow(/ASCII/)
    // the database would make one id of the three
    for (const odd of ['a\0', 'a\ufffd', 'a\ud800'])
      await expect(peer.push(id, { ...config, id: odd })).rejects.toThrow(/U\+FFFD/)
    await expect(other.push(id, config)).rejects.toThrow(noSuchTask)
    await expect(other.pushes(id)).rejects.toThrow(noSuchTask)
    await expect(other.unpush(id, 'a')).rejects.toThrow(noSuchTask)
    for (let at = 0; at < 10; at++) await peer.push(id, { ...config, id: `${at}` })
    await peer.push(id, { ...config, id: '3', url: 'https://agent.example/other' })
    await expect(peer.push(id, config)).rejects.toThrow(/10 push/)
    expect(await peer.pushes(id)).toHaveLength(10)
  })
})

/** What a message is on the wire of each kind, and what an error is there: the code of JSON-RPC, or the status and its name. */
const toWire = ({ version, transport }: Kind, message: Record<string, unknown>) => {
  if (transport === 'HTTP+JSON' && version === '0.3') {
    const { parts, ...rest } = message
    return { request: { role: 'ROLE_USER', ...rest, content: parts } }
  }
  const kind = version === '0.3' ? { kind: 'message', role: 'user' } : { role: 'ROLE_USER' }
  return { message: { ...kind, ...message } }
}
const toParts = ({ version, transport }: Kind, parts: object[]): object[] =>
  version === '0.3' && transport === 'JSONRPC'
    ? parts.map((part) => ({ kind: Object.keys(part)[0] === 'url' ? 'file' : Object.keys(part)[0], ...part }))
    : parts
const toFilePart = ({ version, transport }: Kind, url: string): object => {
  if (version === '1.0') return { url }
  return {
    file: transport === 'JSONRPC' ? { uri: url } : { fileWithUri: url },
    ...(transport === 'JSONRPC' && { kind: 'file' }),
  }
}

const toBytesPart = ({ version, transport }: Kind, bytes: unknown): object => {
  if (version === '1.0') return { raw: bytes }
  return transport === 'JSONRPC' ? { kind: 'file', file: { bytes } } : { file: { fileWithBytes: bytes } }
}

/** Sends a message as it is on the wire; gives the status, and the code of the error in JSON-RPC. */
const sendRaw = async (
  server: TestServer,
  kind: Kind,
  business: string,
  token: string,
  message: Record<string, unknown>,
  headers: Record<string, string> = {},
  configuration?: object,
) => {
  const params = { ...toWire(kind, message), ...(configuration && { configuration }) }
  const version = { 'a2a-version': kind.version, ...headers }
  const path = `/a2a/agents/${business}`
  if (kind.transport === 'HTTP+JSON') {
    const below = kind.version === '1.0' ? 'message:send' : 'v1/message:send'
    const { status, text } = await server.call('POST', `${path}/${below}`, {
      token,
      json: params,
      headers: version,
    })
    return { status, text }
  }
  const method = kind.version === '1.0' ? 'SendMessage' : 'message/send'
  const json = { jsonrpc: '2.0', id: 7, method, params }
  const { status, body, text } = await server.call('POST', path, { token, json, headers: version })
  expect([status, body.id]).toEqual([200, 7])
  return { status: body.error?.code as number, text }
}

describe.each(kinds.filter(({ version }) => version === '0.3'))(
  'a stream of protocol 0.3 by $transport',
  (kind) => {
    test('has `final` on its last event alone, also where the task asks', async ({
      server,
      shop,
      newToken,
      model,
    }) => {
      model.script({ planner: [{ tool_calls: [ask] }] } as never)
      const parts = toParts(kind, [{ text: 'Paint it' }])
      const params = toWire(kind, { messageId: randomUUID(), parts })
      const isRpc = kind.transport === 'JSONRPC'
      const { text } = await server.call('POST', `/a2a/agents/${shop}${isRpc ? '' : '/v1/message:stream'}`, {
        token: await newToken(shop),
        json: isRpc ? { jsonrpc: '2.0', id: 7, method: 'message/stream', params } : params,
        headers: { 'a2a-version': '0.3' },
      })
      const finals = [...text.matchAll(/"final":(true|false)/g)].map(([, value]) => value)
      expect(finals.at(-1)).toBe('true')
      expect(finals.slice(0, -1)).not.toContain('true')
      expect(text).toMatch(/input-required|TASK_STATE_INPUT_REQUIRED/)
    })
  },
)

test.for(['length', 'content_filter'])(
  'a task whose answer was cut says so: %s',
  async (finish, { server, shop, newToken, model }) => {
    model.script({ planner: [{ text: 'The ten rules are', finish }] } as never)
    const kind = { version: '1.0', transport: 'JSONRPC' } as const
    const params = toWire(kind, {
      messageId: randomUUID(),
      parts: toParts(kind, [{ text: 'Name the rules' }]),
    })
    const { body } = await server.call('POST', `/a2a/agents/${shop}`, {
      token: await newToken(shop),
      json: { jsonrpc: '2.0', id: 7, method: 'SendMessage', params },
      headers: { 'a2a-version': '1.0' },
    })
    expect(body.result.task).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      metadata: { finish_reason: finish },
    })
  },
)

/** What each error is: the code of JSON-RPC, and the status of HTTP. */
const errors = {
  malformed: [-32602, 400],
  version: [-32009, 400],
  notFound: [-32001, 404],
  unsupported: [-32004, 400],
  extension: [-32008, 400],
} as const

describe.each(kinds)('bad input of protocol $version by $transport', (kind) => {
  const expected = (name: keyof typeof errors): number => errors[name][kind.transport === 'JSONRPC' ? 0 : 1]

  test('with a member of another type than the protocol gives it is malformed, not an error of ours', async ({
    server,
    shop,
    newToken,
    open,
  }) => {
    const token = await newToken(shop)
    const odd = { toString: 1, valueOf: 1 }
    const hello = { messageId: randomUUID(), parts: toParts(kind, [{ text: 'Hello' }]) }
    const file = { messageId: randomUUID(), parts: [toFilePart(kind, odd as never)] }
    const { status, text } = await sendRaw(server, kind, shop, token, file)
    expect(status, text).toBe(expected('malformed'))
    const { id } = await (await open(kind, shop, { token })).send(newMessage('Hello'))
    const config = { url: 'https://agent.example/push', token: 't' }
    const set = 'tasks/pushNotificationConfig/set'
    const calls: [method: string, params: object][] =
      kind.version === '1.0'
        ? [
            ['GetTask', { id: odd }],
            ['ListTasks', { contextId: odd }],
            ['CreateTaskPushNotificationConfig', { taskId: id, ...config, id: odd }],
          ]
        : [
            [set, { taskId: id }],
            [set, { taskId: id, pushNotificationConfig: { ...config, id: odd } }],
            ['tasks/pushNotificationConfig/get', { id, pushNotificationConfigId: odd }],
            ['message/send', { ...toWire(kind, hello), configuration: { acceptedOutputModes: {} } }],
            ['message/stream', { ...toWire(kind, hello), configuration: { acceptedOutputModes: 5 } }],
          ]
    for (const [method, params] of kind.transport === 'JSONRPC' ? calls : []) {
      const json = { jsonrpc: '2.0', id: 1, method, params }
      const headers = { 'a2a-version': kind.version }
      const { body } = await server.call('POST', `/a2a/agents/${shop}`, { token, json, headers })
      expect([-32602, -32001], `${method} ${JSON.stringify(body)}`).toContain(body.error?.code)
    }
  })

  test('gets the error of the protocol, which names what is wrong', async ({
    server,
    shop,
    merchant,
    newToken,
  }) => {
    const token = await newToken(shop)
    const parts = toParts(kind, [{ text: 'Hello' }])
    const valid = { messageId: randomUUID(), parts }
    const send = (change: object, headers?: Record<string, string>) =>
      sendRaw(server, kind, shop, token, { ...valid, messageId: randomUUID(), ...change }, headers)
    const refused: [reason: string, Record<string, unknown>, keyof typeof errors][] = [
      ['contextId', { contextId: 'x'.repeat(4000) }, 'malformed'],
      ['messageId', { messageId: '' }, 'malformed'],
      ['10000 parts', { parts: Array.from({ length: 10_000 }, () => parts[0]) }, 'malformed'],
      ['parts[0] has', { parts: toParts(kind, [{ text: 'x', data: { data: {} } }]) }, 'malformed'],
      ['no content', { parts: toParts(kind, [{}]) }, 'malformed'],
      ['list', { parts: [] }, 'malformed'],
      ['parts[0].text', { parts: toParts(kind, [{ text: 5 }]) }, 'malformed'],
      ['parts[1].text', { parts: [...parts, ...toParts(kind, [{ text: ' \n' }])] }, 'malformed'],
      ['there is no task', { taskId: 'sample-payment-task' }, 'notFound'],
      ['base64', { parts: [...parts, toBytesPart(kind, '***')] }, 'malformed'],
      ['base64', { parts: [...parts, toBytesPart(kind, 5)] }, 'malformed'],
      ['no content', { parts: toParts(kind, [{ data: null }]) }, 'malformed'],
      ['referenceTaskIds', { referenceTaskIds: { a: 1 } }, 'malformed'],
      ['extensions', { extensions: [5] }, 'malformed'],
    ]
    const file = { bytes: 'aGk=', uri: 'https://shop.example/x' }
    const ofKinds: [reason: string, part: object][] = [
      ['parts[0].kind', { kind: 'data', text: 'x' }],
      ['parts[0].kind', { kind: 'text', data: { x: 1 } }],
      ['parts[0].data', { kind: 'data', data: 5 }],
      ['bytes and uri', { kind: 'file', file }],
      ['bytes and uri', { kind: 'file', file: {} }],
    ]
    if (kind.version === '0.3' && kind.transport === 'JSONRPC')
      refused.push(...ofKinds.map(([reason, part]) => [reason, { parts: [part] }, 'malformed'] as never))
    for (const host of ['127.0.0.1', '10.0.0.1', 'localhost', '[::1]', '169.254.169.254']) {
      const part = toFilePart(kind, `http://${host}/x`)
      refused.push([host.replace(/[[\]]/g, ''), { parts: [...parts, part] }, 'malformed'])
    }
    for (const [reason, change, error] of refused) {
      const { status, text } = await send(change)
      expect([reason, status], text).toEqual([reason, expected(error)])
      expect(text).toContain(reason)
    }
    const short = { ...valid, messageId: randomUUID() }
    const negative = await sendRaw(server, kind, shop, token, short, {}, { historyLength: -1 })
    expect([negative.status, negative.text]).toEqual([
      expected('malformed'),
      expect.stringContaining('historyLength'),
    ])
    const { status, text } = await send({}, { 'a2a-version': '9.1' })
    expect(status, text).toBe(expected('version'))
    const ofMerchant = await newToken(merchant)
    expect((await sendRaw(server, kind, merchant, ofMerchant, valid)).status).toBe(expected('extension'))
    const both = { 'a2a-extensions': 'https://other.example/x', 'x-a2a-extensions': ap2OfSamples }
    const message = { ...valid, messageId: randomUUID() }
    const accepted = await sendRaw(server, kind, merchant, ofMerchant, message, both)
    expect(accepted.text.toLowerCase()).toContain('completed')
  })
})

describe.each(kinds)('nulls of protocol $version by $transport', (kind) => {
  test('are absent members, as clients in Python send them', async ({ server, shop, newToken, runtime }) => {
    const token = await newToken(shop)
    const file = toFilePart(kind, 'https://shop.example/x') as { file?: object }
    const parts = [
      ...toParts(kind, [{ text: 'Hello', metadata: null }, { data: { data: { skus: null } } }]),
      { ...file, ...(file.file && { file: { ...file.file, bytes: null, fileWithBytes: null, name: null } }) },
    ]
    const absent = { contextId: null, taskId: null, metadata: null, referenceTaskIds: null, extensions: null }
    const now = kind.version === '1.0' ? { returnImmediately: true } : { blocking: false }
    const configuration = {
      ...now,
      acceptedOutputModes: null,
      historyLength: null,
      pushNotificationConfig: null,
    }
    const message = { messageId: randomUUID(), parts, ...absent }
    const sent = await sendRaw(server, kind, shop, token, message, {}, configuration)
    const [id = ''] = /run_\w+/.exec(sent.text) ?? []
    expect(await runtime.of(shop).run(id), sent.text).toMatchObject({ prompt: 'Hello' })
  })
})

describe.each(kinds)('a message id of protocol $version by $transport', (kind) => {
  test('names a message with its parts: other metadata is the same message, other parts are another one', async ({
    server,
    shop,
    newToken,
  }) => {
    const token = await newToken(shop)
    const messageId = randomUUID()
    const send = async (text: string, more: object = {}, headers?: Record<string, string>) => {
      const message = { messageId, parts: toParts(kind, [{ text }]), ...more }
      const sent = await sendRaw(server, kind, shop, token, message, headers)
      const [id] = /run_\w+/.exec(sent.text) ?? []
      expect(id, sent.text).toBeDefined()
      return id
    }
    const first = await send('Hello')
    expect(await send('Hello', { metadata: { sent_at: '2026-01-01T00:00:00Z' } })).toBe(first)
    expect(await send('Hello', { contextId: unique('other') })).toBe(first)
    expect(await send('Hello', {}, { 'x-a2a-extensions': ap2OfSamples })).toBe(first)
    const other = await send('Good bye')
    expect(other).not.toBe(first)
    expect(await send('Good bye')).toBe(other)
  })
})

describe('the envelope of JSON-RPC', () => {
  const request = { jsonrpc: '2.0', id: 'a', params: { id: 'x' } }
  const invalid: [string, unknown, unknown][] = [
    ['another version', { ...request, jsonrpc: '1.0' }, 'a'],
    ['no version', { id: 'a', params: {} }, 'a'],
    ['an object as id', { ...request, id: {} }, null],
    ['a fraction as id', { ...request, id: 1.5 }, null],
    ['no method', { ...request, method: undefined }, 'a'],
    ['a number as method', { ...request, method: 5 }, 'a'],
    ['a batch', [{ ...request }], null],
    ['a text', 'x', null],
    ['null', null, null],
  ]
  test.for(kinds.filter(({ transport }) => transport === 'JSONRPC'))(
    'of protocol $version has the codes of the specification',
    async ({ version }, { server, shop, newToken }) => {
      const token = await newToken(shop)
      const method = version === '1.0' ? 'GetTask' : 'tasks/get'
      const call = async (body: unknown) => {
        const raw = JSON.stringify(body)
        const headers = { 'a2a-version': version, 'content-type': 'application/json' }
        const answer = await server.call('POST', `/a2a/agents/${shop}`, { token, raw, headers })
        return [answer.status, answer.body.id, answer.body.error?.code]
      }
      for (const [name, body, id] of invalid) {
        const sent =
          typeof body === 'object' && body !== null && !Array.isArray(body) ? { method, ...body } : body
        expect([name, ...(await call(sent))]).toEqual([name, 200, id, -32600])
      }
      const headers = { 'a2a-version': version, 'content-type': 'application/json' }
      const raw = `{"jsonrpc": "2.0", "id": 1764273600000000000, "method": "${method}", "params": {"id": "x"}}`
      const { text } = await server.call('POST', `/a2a/agents/${shop}`, { token, raw, headers })
      expect(text).toContain('"id":1764273600000000000')
      const valid = { ...request, method }
      expect(await call(valid)).toEqual([200, 'a', -32001])
      for (const params of [[1], 'x', null, {}, { id: 5 }, { id: 'x', historyLength: -1 }])
        expect([params, ...(await call({ ...valid, params }))]).toEqual([
          params,
          200,
          'a',
          params && (params as { id?: unknown }).id === 5 && version === '1.0' ? -32001 : -32602,
        ])
    },
  )

  test('of HTTP+JSON has the codes for bodies that cannot be read', async ({ server, shop, newToken }) => {
    const token = await newToken(shop)
    const post = async (type: string, raw: string) => {
      const path = `/a2a/agents/${shop}/message:send`
      const { status, body, headers } = await server.call('POST', path, {
        token,
        raw,
        headers: { 'content-type': type },
      })
      return [status, body.error?.code, body.error?.details?.[0]?.reason, headers.get('content-type')]
    }
    const json = expect.stringContaining('application/json')
    for (const type of ['text/plain', 'json'])
      expect(await post(type, 'x')).toEqual([400, 400, 'CONTENT_TYPE_NOT_SUPPORTED', json])
    expect((await server.call('POST', `/a2a/agents/${shop}/tasks/run_x:cancel`, { token })).status).toBe(404)
    expect(await post('application/json', '{"message"')).toEqual([400, 400, expect.any(String), json])
    expect(await post('application/json', '{"message":{"messageId":"a","parts":[{"text":"x"}]}}')).toEqual([
      400,
      400,
      expect.any(String),
      json,
    ])
  })
})

describe('the address of an agent', () => {
  // params may be left out: https://www.jsonrpc.org/specification#request_object
  const unknown = { jsonrpc: '2.0', id: 'a' }
  test('knows no other methods and no text that is not JSON', async ({ server, shop, newToken }) => {
    const token = await newToken(shop)
    const path = `/a2a/agents/${shop}`
    for (const [version, method] of [
      ['1.0', 'message/send'],
      ['0.3', 'SendMessage'],
      ['1.0', 'x'],
      ['0.3', 'x'],
    ] as const) {
      const headers = { 'a2a-version': version }
      const { status, body } = await server.call('POST', path, {
        token,
        headers,
        json: { ...unknown, method },
      })
      expect([method, status, body.error.code]).toEqual([method, 200, -32601])
    }
    const list = { jsonrpc: '2.0', id: 'b', method: 'ListTasks' }
    const listed = await server.call('POST', path, { token, headers: { 'a2a-version': '1.0' }, json: list })
    expect(listed.body.result).toMatchObject({ tasks: expect.any(Array) })
    for (const [version, said] of [
      ['1.0', { result: { tasks: expect.any(Array) } }],
      ['9.9', { error: { code: -32009 } }],
    ] as const) {
      const { body } = await server.call('POST', `${path}?A2A-Version=${version}`, { token, json: list })
      expect(body).toMatchObject(said)
    }
    const json = { 'content-type': 'application/json' }
    const broken = await server.call('POST', path, { token, headers: json, raw: '{"jsonrpc"' })
    expect([broken.status, broken.body.error.code]).toEqual([200, -32700])
    const untyped = await server.call('POST', path, { token, headers: { 'content-type': 'json' }, raw: '{}' })
    expect([untyped.status, untyped.body.error.code]).toEqual([200, -32005])
    const batch = await server.call('POST', path, { token, json: [{ ...unknown, method: 'GetTask' }] })
    expect([batch.status, batch.body.error.code]).toEqual([200, -32600])
    expect((await server.call('PUT', path, { token })).status).toBe(405)
    const rest = await server.call('GET', `${path}/nothing`, { token })
    expect([rest.status, rest.body.error.status]).toEqual([404, 'NOT_FOUND'])
  })

  test('is for tokens of the business that may submit', async ({
    server,
    shop,
    merchant,
    runtime,
    newToken,
  }) => {
    const json = { ...unknown, method: 'GetTask', params: { id: 'run_x' } }
    const headers = { 'a2a-version': '1.0' }
    const call = async (token: string | undefined, business = shop) =>
      (await server.call('POST', `/a2a/agents/${business}`, { ...(token && { token }), headers, json }))
        .status
    const proxy = await runtime.admin.tokens.create(
      {},
      {
        ...{ business_id: shop, label: 'x', roles: ['submit', 'read', 'consent', 'delete'] },
      },
    )
    expect(await call(undefined)).toBe(401)
    expect(await call(proxy.token)).toBe(403)
    expect(await call(await newToken(merchant))).toBe(403)
    expect(await call(await newToken(shop))).toBe(200)
    const bare = unique('bare')
    expect(await call(await newToken(bare), bare)).toBe(404)
  })

  test('begins no run for a message whose push configuration is refused', async ({
    server,
    shop,
    newToken,
    runtime,
  }) => {
    const token = await newToken(shop)
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: unique('Hello') }] }
    const taskPushNotificationConfig = { url: 'http://10.0.0.1/push' }
    const params = { message, configuration: { taskPushNotificationConfig } }
    const { body, text } = await server.call('POST', `/a2a/agents/${shop}`, {
      token,
      json: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params },
      headers: { 'a2a-version': '1.0' },
    })
    expect(body.error?.code, text).toBe(errors.malformed[0])
    const { data } = await runtime.of(shop).runs({ limit: 100 })
    expect(data.filter(({ prompt }) => prompt === message.parts[0]?.text)).toEqual([])
  })

  test('has the questions of a task and the messages that answered them in its history, the last of them first to stay', async ({
    open,
    server,
    shop,
    newToken,
    model,
  }) => {
    model.script({ planner: Array.from({ length: 9 }, () => ({ tool_calls: [ask] })) } as never)
    const token = await newToken(shop)
    const peer = await open({ version: '1.0', transport: 'JSONRPC' }, shop, { token })
    const [opening, first, second] = [newMessage('Paint it'), newMessage('blue'), newMessage('red')]
    const { id: taskId } = await peer.send(opening)
    await peer.send({ ...first, taskId })
    await peer.send({ ...second, taskId })
    const read = async (path: string) =>
      (await server.call('GET', `/a2a/agents/${shop}/tasks${path}`, { token })).body
    const toRow = ({
      messageId,
      role,
      parts,
    }: {
      messageId: string
      role: string
      parts: { text: string }[]
    }) => [role === 'ROLE_AGENT' ? 'asks' : messageId, parts[0]?.text]
    const asks = ['asks', 'Which colour?']
    const all = [
      [opening.messageId, 'Paint it'],
      asks,
      [first.messageId, 'blue'],
      asks,
      [second.messageId, 'red'],
    ]
    const { history, contextId } = await read(`/${taskId}`)
    expect(history.map(toRow)).toEqual(all)
    for (const length of [0, 1, 2, 4, 5, 9])
      expect((await read(`/${taskId}?historyLength=${length}`)).history?.map(toRow) ?? []).toEqual(
        length === 0 ? [] : all.slice(-length),
      )
    expect((await read(`?contextId=${contextId}`)).tasks[0].history.map(toRow)).toEqual(all)
  })

  test('lists the tasks of its caller, by context and state, in pages', async ({
    open,
    server,
    shop,
    newToken,
  }) => {
    const token = await newToken(shop)
    const peer = await open({ version: '1.0', transport: 'JSONRPC' }, shop, { token })
    const contextId = unique('context')
    const ids: string[] = []
    for (const text of ['one', 'two', 'three'])
      ids.unshift((await peer.send(newMessage(text, { contextId }))).id)
    const { id: other } = await peer.send(newMessage('four'))
    const list = async (query: string) =>
      (await server.call('GET', `/a2a/agents/${shop}/tasks?${query}`, { token })).body
    const idsOf = (page: { tasks: { id: string }[] }) => page.tasks.map(({ id }) => id)
    expect(idsOf(await list(''))).toEqual([other, ...ids])
    const first = await list(`contextId=${contextId}&pageSize=2&includeArtifacts=true`)
    expect(first).toMatchObject({
      pageSize: 2,
      totalSize: 3,
      tasks: [{ contextId, artifacts: [{ artifactId: 'answer' }] }, {}],
    })
    const second = await list(`contextId=${contextId}&pageSize=2&pageToken=${first.nextPageToken}`)
    expect([idsOf(first), idsOf(second), second.nextPageToken]).toEqual([ids.slice(0, 2), ids.slice(2), ''])
    expect(await list('status=TASK_STATE_FAILED')).toMatchObject({ tasks: [], totalSize: 0 })
    const { tasks } = await list('')
    const since = (at: number) => `statusTimestampAfter=${tasks[at].status.timestamp}`
    expect(idsOf(await list(since(1)))).toEqual([other, ids[0]])
    expect(await list(`${since(1)}&pageSize=1`)).toMatchObject({
      totalSize: 2,
      nextPageToken: expect.stringMatching(/./),
    })
    for (const year of ['+275760', '0000', '2999']) {
      const isPast = year === '0000'
      const page = await list(`statusTimestampAfter=${encodeURIComponent(`${year}-01-01T00:00:00Z`)}`)
      expect([year, page.tasks.length, page.totalSize]).toEqual([year, ...(isPast ? [4, 4] : [0, 0])])
      expect(page.nextPageToken).toBe('')
    }
    expect(await list('status=TASK_STATE_WORKING')).toMatchObject({ tasks: [], totalSize: 0 })
    for (const query of ['pageSize=0', 'pageSize=x', 'status=x', 'statusTimestampAfter=x'])
      expect([query, (await list(query)).error.code]).toEqual([query, 400])
  })
})

describe('the agent card', () => {
  test('is signed by the executor of payments in both versions, again after each change', async ({
    server,
    backend,
    elsewhere,
    runtime,
  }) => {
    const business = unique('signed')
    const executorDatabase = openExecutorDatabase(backend, elsewhere, 2)
    onTestFinished(() => executorDatabase.close())
    const keys = await openPaymentKeys(executorDatabase, createMasterKeys(randomBytes(32).toString('base64')))
    const signer = { issuer: runtime.publicOrigin, signingKey: () => keys.signingKey() }
    const path = `/a2a/agents/${business}/.well-known/agent-card.json`
    const read = async (version: string) =>
      (await server.call('GET', path, { headers: { 'a2a-version': version } })).body
    const sign = () => signNextCard(executorDatabase, createCardSigner(signer), silentLog)
    const jwks = (await server.call('GET', '/.well-known/ap2-jwks.json')).body.keys
    const findKey = (kid: string) => jwks.find((key: { kid: string }) => key.kid === kid)
    for (const name of ['First', 'Second']) {
      await runtime.features.get(agentCardsRef).put(business, { ...card, name, version: '1.0.0', roles: [] })
      expect((await read('1.0')).signatures ?? []).toEqual([])
      while (await sign());
      const signed = await read('1.0')
      expect(signed).toMatchObject({ name, signatures: [{ signature: expect.any(String) }] })
      await verifyAgentCardSignature(async (kid) => findKey(kid))(AgentCard.fromJSON(signed))
      const forged = AgentCard.fromJSON({ ...signed, name: 'Forged' })
      await expect(verifyAgentCardSignature(async (kid) => findKey(kid))(forged)).rejects.toThrow()
      const { signatures, ...legacy } = await read('0.3')
      const payload = Buffer.from(toCanonicalJson(legacy)).toString('base64url')
      const { kid } = JSON.parse(Buffer.from(signatures[0].protected, 'base64url').toString())
      await flattenedVerify({ ...signatures[0], payload }, findKey(kid))
    }
    // what is no card of this server is not signed, whichever caller asks for it
    const mandate = {
      '1.0': '{"vct":"mandate.payment.1"}',
      '0.3': JSON.stringify({ ...card, supportedInterfaces: [{ url: 'https://x' }] }),
    }
    await runtime.features.get(agentCardsRef).sign(business, mandate)
    while (await sign());
    expect((await runtime.features.get(agentCardsRef).read(business))?.signatures).toEqual({})
  })

  test('is in both versions, with the extension of AP2 where the agent has a role', async ({
    server,
    merchant,
    shop,
    runtime,
  }) => {
    const read = async (business: string, version?: string) =>
      (
        await server.call('GET', `/a2a/agents/${business}/.well-known/agent-card.json`, {
          headers: version ? { 'a2a-version': version } : {},
        })
      ).body
    const url = `${runtime.publicOrigin}/a2a/agents/${merchant}`
    const extensions = [
      { uri: ap2, required: true, params: { roles: ['merchant'] } },
      { uri: ap2OfSamples, params: { roles: ['merchant'] } },
    ]
    const current = await read(merchant, '1.0')
    expect(current).toMatchObject({
      name: card.name,
      capabilities: { streaming: true, extensions },
      skills: card.skills,
    })
    expect(current.supportedInterfaces).toMatchObject([
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
    ])
    // a client that names no version gets that of 1.0, without a word of another
    expect(await read(merchant)).toEqual(current)
    // it may be signed already
    const { signatures: _, ...unsigned } = current
    expect(Object.keys(unsigned).sort()).toEqual(
      'capabilities defaultInputModes defaultOutputModes description name securityRequirements securitySchemes skills supportedInterfaces version'.split(
        ' ',
      ),
    )
    expect(AgentCard.toJSON(AgentCard.fromJSON(current))).toEqual(current)
    expect(await read(merchant, '0.3')).toMatchObject({
      ...{ name: card.name, url, preferredTransport: 'JSONRPC', protocolVersion: '0.3' },
      capabilities: { streaming: true, extensions },
      supportedInterfaces: current.supportedInterfaces,
    })
    expect((await read(shop, '1.0')).capabilities.extensions ?? []).toEqual([])
  })

  test('is not sent again to who has it', async ({ server, runtime }) => {
    const business = unique('cached')
    const put = (name: string) =>
      runtime.features.get(agentCardsRef).put(business, { ...card, name, version: '1.0.0', roles: [] })
    const read = async (headers: Record<string, string> = {}) => {
      const path = `/a2a/agents/${business}/.well-known/agent-card.json`
      const { status, text, headers: got } = await server.call('GET', path, { headers })
      return { status, text, etag: got.get('etag') ?? '', modified: got.get('last-modified') ?? '' }
    }
    await put('First')
    await read()
    const first = await read()
    expect(first).toMatchObject({
      status: 200,
      etag: expect.stringMatching(/^"[\w-]+"$/),
      modified: expect.stringMatching(/ GMT$/),
    })
    for (const headers of [
      { 'if-none-match': first.etag },
      { 'if-none-match': `"x", W/${first.etag}` },
      { 'if-modified-since': first.modified },
    ])
      expect(await read(headers)).toEqual({ ...first, status: 304, text: '' })
    expect((await read({ 'if-none-match': '"x"', 'if-modified-since': first.modified })).status).toBe(200)
    expect((await read({ 'if-none-match': first.etag, 'a2a-version': '0.3' })).status).toBe(200)
    await put('Second')
    expect(await read({ 'if-none-match': first.etag })).toMatchObject({
      status: 200,
      text: expect.stringContaining('Second'),
    })
  })

  test('of the business `default` is at the root; without a card there is none', async ({ server }) => {
    const root = '/.well-known/agent-card.json'
    const path = '/admin/v1/businesses/default/agent-card'
    expect((await server.call('GET', root)).status).toBe(404)
    const put = (json: object) => server.call('PUT', path, { token: adminToken, json })
    expect(await put(card)).toMatchObject({
      status: 200,
      body: { business_id: 'default', card: { roles: [], ...card } },
    })
    expect((await server.call('GET', root)).body.name).toBe(card.name)
    const roles = await put({ ...card, roles: ['buyer'] })
    expect([roles.status, roles.body.errors[0].pointer]).toEqual([422, '/roles/0'])
    expect((await put({ ...card, skills: [] })).body.errors[0].pointer).toBe('/skills')
    expect((await server.call('DELETE', path, { token: adminToken })).status).toBe(204)
    expect((await server.call('DELETE', path, { token: adminToken })).status).toBe(404)
    expect((await server.call('GET', root)).status).toBe(404)
  })
})
