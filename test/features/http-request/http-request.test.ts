// backends: either

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect } from 'vitest'
import type { RuntimeState } from '../../../src/state/runtime-state.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { calling, say } from '../../support/script.ts'
import { type TestRuntime, waitForOperator } from '../../support/test-runtime.ts'

/** Runs that call an API of their business, at a real server on loopback. */

type Received = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: string }
type Answer = (request: Received, response: ServerResponse, nth: number) => void

const startApi = async () => {
  const received: Received[] = []
  const api = { received, answer: ((_, response) => response.end('ok')) as Answer, url: '', close: () => {} }
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request
    const entry = { method, url, headers, body: await text(request) }
    received.push(entry)
    api.answer(entry, response, received.length)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  api.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  api.close = () => {
    server.closeAllConnections()
    server.close()
  }
  return api
}

const test = runtimeTest.extend('api', { scope: 'file' }, closing(startApi))
const secret = 'sk-of-the-shop-0123456789'
let fake: FakeModel
let runtime: TestRuntime
let server: TestServer
let api: Awaited<ReturnType<typeof startApi>>
let host: string

test.beforeAll(async ({ model, runtime: r, server: s, api: a }) => {
  ;[fake, runtime, server, api] = [model, r, s, a]
  host = new URL(api.url).host
})
beforeEach(() => {
  fake.reset()
  api.received.length = 0
  api.answer = (_, response) => response.end('ok')
})

let businesses = 0
const admin = (method: string, path: string, json: unknown) =>
  server.call(method, `/admin/v1/businesses${path}`, { token: adminToken, json })
/** A business that may call the API, with its secret in a header. */
const createShop = async (more: object = {}): Promise<string> => {
  const id = `shop_${++businesses}`
  const { status, text: body } = await admin('POST', '', {
    id,
    secrets: { shop_key: secret },
    http_hosts: [
      { host, allow_private: true, headers: { Authorization: 'Bearer {secrets.shop_key}' }, ...more },
    ],
  })
  expect(status, body).toBe(201)
  return id
}

/** What the call of a run left, for the model and in the state. */
const runWith = async (business: string, args: object, more: object = {}) => {
  say(fake, { planner: [calling(['http_request', args]), { text: 'Done.' }] })
  const run = await runtime.complete({ prompt: 'Go on', ...more }, { business })
  const state = await runtime.stateOf(run.id, business)
  return { run, state, result: resultOf(state) }
}
const resultOf = (state: RuntimeState) =>
  state.action_history.flat().find(({ node, result }) => node === 'http_request' && result.call !== undefined)
    ?.result
const offersIt = (): boolean =>
  JSON.stringify(fake.requests('planner').at(-1)?.tools ?? []).includes('"http_request"')

describe('http_request', () => {
  test('is offered where the business has an allowed host, and for no other business', async () => {
    const shop = await createShop()
    await runWith(shop, { url: `${api.url}/a` })
    expect(offersIt()).toBe(true)
    const { result } = await runWith('default', { url: `${api.url}/a` })
    expect(offersIt()).toBe(false)
    expect(result).toMatchObject({
      is_error: true,
      text: expect.stringContaining('no host is allowed for this business'),
    })
    expect(api.received).toHaveLength(1)
  })

  test('sends the secret of the business, which neither model nor state nor log of the run sees', async () => {
    const shop = await createShop()
    api.answer = ({ headers }, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ stock: 7, echo: headers.authorization }))
    }
    const { run, state, result } = await runWith(shop, {
      url: `${api.url}/items?id=1`,
      headers: { accept: 'application/json', authorization: 'Bearer of-the-model' },
    })
    expect(run.status).toBe('completed')
    expect(api.received[0]).toMatchObject({
      method: 'GET',
      url: '/items?id=1',
      headers: { authorization: `Bearer ${secret}`, accept: 'application/json' },
    })
    expect(result?.text).toContain('HTTP 200, application/json')
    expect(result?.text).toContain('"stock":7')
    expect(result?.text).toContain('Bearer [secret]')
    expect(result).toMatchObject({ provenance: 'web' })
    expect(JSON.stringify([state, fake.requests('planner')])).not.toContain(secret)
  })

  test('posts once with the key of its call, and sends the same again where the answer was lost', async () => {
    const shop = await createShop({ idempotency_header: 'Idempotency-Key' })
    api.answer = (_, response, nth) => {
      if (nth === 1) response.destroy()
      else response.writeHead(201).end('{"order": 5}')
    }
    const { result } = await runWith(shop, { method: 'POST', url: `${api.url}/orders`, body: { item: 3 } })
    expect(result?.text).toContain('HTTP 201')
    const [first, second, ...others] = api.received
    expect(others).toEqual([])
    expect(first).toMatchObject({
      method: 'POST',
      body: '{"item":3}',
      headers: { 'content-type': 'application/json' },
    })
    expect(first?.headers['idempotency-key']).toMatch(/^[0-9a-f]{64}$/)
    expect(second).toMatchObject({
      body: first?.body,
      headers: { 'idempotency-key': first?.headers['idempotency-key'] },
    })
  })

  test('that only reads runs beside the others of its reply: four are in flight before one is answered', async () => {
    const shop = await createShop()
    const held: ServerResponse[] = []
    api.answer = ({ method }, response) => {
      if (method !== 'GET') return void response.end('changed')
      held.push(response)
      if (held.length === 4) for (const one of held) one.end('read')
    }
    const get = (path: string): [string, object] => ['http_request', { url: `${api.url}${path}` }]
    const post: [string, object] = ['http_request', { method: 'POST', url: `${api.url}/orders`, body: 'x' }]
    say(fake, { planner: [calling(get('/1'), get('/2'), get('/3'), get('/4'), post), { text: 'Done.' }] })
    const run = await runtime.complete({ prompt: 'Go on' }, { business: shop })
    expect(run.status).toBe('completed')
    expect(api.received.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET', 'GET', 'POST'])
  })

  test('waits for an operator where a host without idempotency keys may have received a request', async () => {
    const shop = await createShop()
    api.answer = (_, response) => void response.destroy()
    const args = { method: 'POST', url: `${api.url}/orders`, body: 'x' }
    say(fake, { planner: [calling(['http_request', args]), { text: 'Done.' }] })
    const { run } = await runtime.of(shop).submit({ prompt: 'Go on', user_id: 'u1' })
    const { effect_id } = await waitForOperator(runtime, run.id, shop)
    expect(api.received).toHaveLength(1)
    await runtime.admin.effects.resolve(effect_id, { took_place: true })
    const ended = await runtime.of(shop).wait(run.id, AbortSignal.timeout(120_000))
    expect(ended.status).toBe('completed')
    expect(resultOf(await runtime.stateOf(run.id, shop))?.text).toContain(
      'An operator confirmed that it took place',
    )
    expect(api.received).toHaveLength(1)
  })

  test('does not follow a redirect', async () => {
    const shop = await createShop()
    api.answer = (_, response) => void response.writeHead(302, { location: 'https://evil.example/x' }).end()
    const { result } = await runWith(shop, { url: `${api.url}/moved` })
    expect(result?.text).toContain('HTTP 302')
    expect(result?.text).toContain('Location: https://evil.example/x')
  })

  test('reads 1 MB of a longer body, no body that is not text, and takes a status of 400 for an error', async () => {
    const shop = await createShop()
    api.answer = (_, response) => void response.end('x'.repeat(3 * 1024 * 1024))
    const long = await runWith(shop, { url: api.url })
    expect(JSON.stringify(long.state).length).toBeLessThan(200_000)
    expect(JSON.stringify(long.state)).toContain('longer than 1 MB')
    api.answer = (_, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end('\x89PNG')
    expect((await runWith(shop, { url: api.url })).result?.text).toContain('image/png, which is not text')
    api.answer = (_, response) => void response.writeHead(422).end('no such item')
    expect((await runWith(shop, { url: api.url })).result).toMatchObject({
      is_error: true,
      text: expect.stringContaining('no such item'),
    })
  })

  test.for<[string, (origin: string) => object, string]>([
    [
      'another host',
      () => ({ url: 'https://example.org/' }),
      'example.org is not allowed. Allowed: 127.0.0.1',
    ],
    ['a subdomain of an allowed host', () => ({ url: 'https://a.127.0.0.1.nip.io/' }), 'is not allowed'],
    ['an address that is none', () => ({ url: 'shop' }), 'this address is not allowed'],
    ['a file', () => ({ url: 'file:///etc/passwd' }), 'is not allowed'],
    [
      'a method that is not allowed',
      (origin) => ({ url: origin, method: 'DELETE' }),
      'DELETE is not allowed',
    ],
    ['a GET with a body', (origin) => ({ url: origin, body: 'x' }), 'GET takes no body'],
    [
      'a header of the connection',
      (origin) => ({ url: origin, headers: { Host: 'evil' } }),
      'a header that Mason writes itself',
    ],
    [
      'a header on two lines',
      (origin) => ({ url: origin, headers: { a: 'b\r\nc: d' } }),
      'headers are invalid',
    ],
  ])('refuses %s and sends nothing', async ([, toArgs, error]) => {
    const shop = await createShop({ methods: ['GET', 'POST'] })
    const { run, result } = await runWith(shop, toArgs(api.url))
    expect(run.status).toBe('completed')
    expect(result).toMatchObject({ is_error: true, text: expect.stringContaining(error) })
    expect(result?.text).toContain('Nothing was sent')
    expect(api.received).toEqual([])
  })

  test('reaches no private address that an admin has not allowed', async () => {
    const shop = await createShop({ allow_private: false })
    const { result } = await runWith(shop, { url: api.url.replace('http', 'https') })
    expect(result).toMatchObject({ is_error: true, text: expect.stringContaining('could not be reached') })
    expect(api.received).toEqual([])
  })
})

describe('the hosts and secrets of a business', () => {
  test('are changed by PATCH; null deletes a secret, and secrets are never returned', async () => {
    const shop = await createShop()
    const changed = await admin('PATCH', `/${shop}`, { secrets: { other: 'another-secret' } })
    expect(changed.body).toMatchObject({ id: shop, secrets: ['other', 'shop_key'] })
    expect(changed.text).not.toContain('another-secret')
    const refused = await admin('PATCH', `/${shop}`, { secrets: { shop_key: null } })
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      [expect.objectContaining({ pointer: '/http_hosts/0/headers/Authorization' })],
    ])
    const cleared = await admin('PATCH', `/${shop}`, { secrets: { shop_key: null }, http_hosts: [] })
    expect(cleared.body).toMatchObject({ secrets: ['other'], http_hosts: [] })
  })

  test.for<[string, object, string]>([
    ['a host with a scheme', { http_hosts: [{ host: 'https://a.example' }] }, '/http_hosts/0/host'],
    ['a host with a path', { http_hosts: [{ host: 'a.example/x' }] }, '/http_hosts/0/host'],
    ['any host', { http_hosts: [{ host: '*' }] }, '/http_hosts/0/host'],
    [
      'an unknown method',
      { http_hosts: [{ host: 'a.example', methods: ['TRACE'] }] },
      '/http_hosts/0/methods/0',
    ],
    [
      'a header of the connection',
      { http_hosts: [{ host: 'a.example', headers: { host: 'b' } }] },
      '/http_hosts/0/headers/host',
    ],
    [
      'a secret that is not there',
      { http_hosts: [{ host: 'a.example', headers: { a: '{secrets.no}' } }] },
      '/http_hosts/0/headers/a',
    ],
    ['a short secret', { secrets: { a: 'short' } }, '/secrets/a'],
    ['a secret with a line end', { secrets: { a: 'first line\nsecond' } }, '/secrets/a'],
    [
      'the name of a prototype',
      { secrets: JSON.parse('{"__proto__": "long-enough"}') },
      '/secrets/__proto__',
    ],
  ])('refuse %s, naming the field', async ([, json, pointer]) => {
    const { status, body } = await admin('POST', '', { id: `bad_${++businesses}`, ...json })
    expect([status, body.errors?.map((error: { pointer: string }) => error.pointer)]).toEqual([
      422,
      [pointer],
    ])
  })
})
