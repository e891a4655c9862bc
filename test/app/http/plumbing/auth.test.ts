import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MasonError } from '../../../../src/state/errors.ts'
import type { FakeRuntime } from '../../../support/fake-runtime.ts'
import type { TestServer } from '../../../support/http.ts'
import { body, openGuarded, serve, serveGuarded } from '../test-server.ts'

const protectedRoutes = [
  ['POST', '/v1/runs'],
  ['POST', '/v1/runs/wait'],
  ['GET', '/v1/runs'],
  ['GET', '/v1/runs/r'],
  ['HEAD', '/v1/runs/r'],
  ['GET', '/v1/runs/r/state'],
  ['GET', `/v1/runs/r/blobs/${'a'.repeat(64)}`],
  ['GET', '/v1/runs/r/events'],
  ['POST', '/v1/runs/r/cancel'],
  ['POST', '/v1/runs/r/input'],
  ['GET', '/v1/sessions'],
  ['GET', '/v1/sessions/s'],
  ['GET', '/v1/sessions/s/events'],
  ['DELETE', '/v1/sessions/s'],
  ['POST', '/v1/sessions/s/fork'],
] as const

/** One server for all tests that ask it once. */
let server: TestServer
let fake: FakeRuntime
beforeAll(async () => {
  ;({ server, fake } = await openGuarded())
})
afterAll(() => server.close())

describe('a request without a token', () => {
  it.each(protectedRoutes)('a %s of %s without a token gets 401', async (method, path) => {
    const before = fake.calls.length
    const reply = await server.call(method, path)
    expect(reply.status).toBe(401)
    expect(reply.headers.get('www-authenticate')).toBe('Bearer realm="mason"')
    if (method !== 'HEAD') expect(reply.body.code).toBe('unauthorized')
    expect(fake.calls).toHaveLength(before)
  })

  it.each(['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'])(
    '%s needs no token',
    async (path) => {
      expect((await server.call('GET', path)).status).toBe(200)
    },
  )

  it('the body of a request without a token is not read', async () => {
    const { server } = await serveGuarded()
    expect((await server.call('POST', '/v1/runs', { raw: '{' })).status).toBe(401)
  })
})

describe('a request with a token', () => {
  it.each(['Bearer', 'Bearer ', 'Basic YTpi', 'all', 'Bearer wrong', 'Bearer a b', 'Bearer the-admi'])(
    'a request with the authorization "%s" gets 401',
    async (authorization) => {
      expect((await server.call('GET', '/v1/runs', { headers: { authorization } })).status).toBe(401)
    },
  )

  it('a token acts for its business', async () => {
    const { server, fake } = await serveGuarded()
    for (const headers of [{ authorization: 'Bearer all' }, { authorization: 'bearer  all' }])
      await server.call('GET', '/v1/runs', { headers })
    expect(fake.calls.map(([business]) => business)).toEqual(['acme', 'acme'])
  })

  it('a run of another business is not found', async () => {
    const { server } = await serveGuarded()
    await server.call('POST', '/v1/runs', { json: body, token: 'all' })
    for (const path of ['/v1/runs/run_1', '/v1/runs/run_1/state', '/v1/runs/run_1/events'])
      expect((await server.call('GET', path, { token: 'other' })).status).toBe(404)
    expect((await server.call('POST', '/v1/runs/run_1/cancel', { token: 'other' })).status).toBe(404)
  })

  it.each([
    ['submitter', 'GET', '/v1/runs', 403],
    ['submitter', 'GET', '/v1/runs/r/events', 403],
    ['submitter', 'POST', '/v1/runs/r/cancel', 404],
    ['submitter', 'DELETE', '/v1/sessions/s', 403],
    ['reader', 'GET', '/v1/runs', 200],
    ['reader', 'POST', '/v1/runs', 403],
    ['reader', 'POST', '/v1/runs/r/cancel', 403],
    ['reader', 'DELETE', '/v1/sessions/s', 403],
    ['boss', 'GET', '/v1/runs', 200],
    ['boss', 'POST', '/v1/runs/r/cancel', 404],
    ['boss', 'DELETE', '/v1/sessions/s', 404],
  ])('the token "%s" gets for %s %s a %i', async (token, method, path, status) => {
    expect((await server.call(method, path, { token })).status).toBe(status)
  })

  it('a token may name its own business and no other, in body or query', async () => {
    const { server, fake } = await serveGuarded()
    const post = (token: string, query: string, business_id?: string) =>
      server.call('POST', `/v1/runs${query}`, {
        json: { ...body, ...(business_id && { business_id }) },
        token,
      })
    expect((await post('all', '', 'acme')).status).toBe(202)
    expect((await post('all', '?business_id=acme')).status).toBe(202)
    for (const reply of [
      await post('all', '', 'globex'),
      await post('all', '?business_id=globex'),
      await post('boss', '', 'globex'),
    ])
      expect([reply.status, reply.body.code]).toEqual([403, 'forbidden'])
    expect(fake.calls).toHaveLength(2)
  })

  it('a request is answered with 503 while the database cannot be reached', async () => {
    const { server, fake } = await serveGuarded()
    fake.failing.set('authenticate', new MasonError('database_unavailable', 'connect ECONNREFUSED 10.0.0.5'))
    const reply = await server.call('GET', '/v1/runs', { token: 'all' })
    expect([reply.status, reply.body.code]).toEqual([503, 'database_unavailable'])
    expect(reply.text).not.toContain('10.0.0.5')
  })
})

describe('the admin token', () => {
  it('the admin token acts for the business of body or query, else for default', async () => {
    const { server, fake } = await serveGuarded()
    const token = 'the-admin'
    await server.call('POST', '/v1/runs', { json: body, token })
    await server.call('POST', '/v1/runs', { json: { ...body, business_id: 'acme' }, token })
    await server.call('GET', '/v1/runs?business_id=globex', { token })
    expect(fake.calls.map(([business]) => business)).toEqual(['default', 'acme', 'globex'])
  })

  it('the admin token cannot act for two businesses at once', async () => {
    const { server } = await serveGuarded()
    const call = { json: { ...body, business_id: 'acme' }, token: 'the-admin' }
    expect((await server.call('POST', '/v1/runs?business_id=globex', call)).status).toBe(422)
  })
})

describe('the Host header', () => {
  /** What the server answers to these lines of a request, byte for byte. */
  const send = async (target: string, ...lines: string[]): Promise<string> => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.end(Buffer.from([`GET ${target}`, ...lines, 'Connection: close', '', ''].join('\r\n'), 'latin1'))
    return text(socket)
  }

  it.each([
    'user@mason.example',
    'user:secret@mason.example',
    'mason.example/console',
    'mason.example?x',
    'mason.example#x',
    'mason.example, evil.example',
    'mason.example evil.example',
    'mason.example:',
    'mason.example:http',
    'mason.example:808080',
    'mäson.example',
    'mason.example\x7f',
    'mason.example\tx',
    '%6dason.example',
    'http://mason.example',
    'mason.example\\evil',
    '[::1',
    '[::1]x',
    '::1',
    '<b>',
    'mason.example"',
    `${'a'.repeat(256)}`,
    '',
  ])('of a request is refused with 400 where it is "%s"', async (host) => {
    for (const path of [
      '/healthz',
      '/v1/runs',
      '/openapi.json',
      '/.well-known/agent-card.json',
      '/nothing',
    ]) {
      const answer = await send(`${path} HTTP/1.1`, `Host: ${host}`)
      expect([path, answer.slice(0, 12)]).toEqual([path, 'HTTP/1.1 400'])
      if (host) expect(answer).not.toContain(host)
    }
  })

  it('is refused where there are two, also of one value, and where HTTP/1.1 has none', async () => {
    for (const second of ['mason.example', 'evil.example', ''])
      expect(await send('/healthz HTTP/1.1', 'Host: mason.example', `hOsT: ${second}`)).toMatch(
        /^HTTP\/1\.1 400 [\s\S]*the Host header must be there once, with a host and at most a port/,
      )
    expect(await send('/healthz HTTP/1.1')).toMatch(/^HTTP\/1\.1 400/)
    expect(await send('/healthz HTTP/1.0')).toMatch(/^HTTP\/1\.1 200/)
  })

  it.each([
    'mason.example',
    'mason_api:8080',
    '10.0.0.5',
    '[::ffff:10.0.0.5]:80',
    'MASON.example.',
    'a--b.c',
  ])('is accepted as %s', async (host) =>
    expect(await send('/healthz HTTP/1.1', `Host: ${host}`)).toMatch(/^HTTP\/1\.1 200/),
  )

  it('and the host of an absolute address count for nothing, and are in no answer', async () => {
    for (const address of ['http://evil.example', 'HTTPS://evil.example:1', 'ftp://a@evil.example'])
      expect(await send(`${address}/healthz HTTP/1.1`, 'Host: mason.example')).toMatch(/^HTTP\/1\.1 200/)
    const answer = await send('http://evil.example/consent/a-secret HTTP/1.1', 'Host: mason.example')
    expect(answer).not.toMatch(/evil|mason\.example|a-secret/)
  })
})

describe('a server with auth off', () => {
  it('with auth off every caller is the business default and can name no other', async () => {
    const { server, fake } = await serve()
    const call = { json: { ...body, business_id: 'default' }, token: 'whatever' }
    expect((await server.call('POST', '/v1/runs', call)).status).toBe(202)
    expect(fake.calls[0]?.[0]).toBe('default')
    expect((await server.call('GET', '/v1/runs?business_id=acme')).status).toBe(403)
  })

  it.each([
    ['127.0.0.1', 200],
    ['localhost:8080', 200],
    ['[::1]:8080', 200],
    ['evil.example', 403],
    ['localhost.evil.example', 403],
    ['127.0.0.1.evil.example', 403],
    ['mason.localhost:8080', 200],
    ['evil.example/.localhost', 400],
    ['evil.example?.localhost', 400],
    ['user@evil.example#.localhost', 400],
    ['a b.localhost', 400],
    ['..localhost', 403],
    ['127.0.0.999', 403],
    ['127.0.0.1:999999', 400],
  ])('with auth off a request to the host %s gets %i', async (host, status) => {
    const { server } = await serve()
    const received = await new Promise((resolve, reject) =>
      request(`${server.url}/v1/runs`, { headers: { host } }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
        .on('error', reject)
        .end(),
    )
    expect(received).toBe(status)
  })
})

describe('a web page, with auth off', () => {
  const page = 'https://evil.example'
  const form = 'multipart/form-data; boundary=x'
  it.each([
    ['a form of another origin', { origin: page, 'content-type': 'application/x-www-form-urlencoded' }],
    ['a text of another origin', { origin: page, 'content-type': 'text/plain; application/json' }],
    ['no type', { origin: page }],
    ['an origin without a name', { origin: 'null', 'content-type': 'text/plain' }],
    ['another port of this machine', { origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' }],
    ['another site without an origin', { 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' }],
  ])('is refused when it sends %s, and nothing happens', async (_what, headers) => {
    const { server, fake } = await serve()
    const routes = [
      ['POST', '/v1/runs'],
      ['POST', '/v1/runs/r/cancel'],
      ['DELETE', '/v1/sessions/s'],
      ['POST', '/v1/audio/transcriptions'],
      ['POST', '/admin/v1/tokens'],
      ['DELETE', '/v1/memories?user_id=u'],
    ]
    for (const [method = '', path = ''] of routes) {
      const reply = await server.call(method, path, { headers: headers as Record<string, string> })
      expect([path, reply.status]).toEqual([path, 403])
      // also where errors have OpenAI's form
      expect(reply.text).toContain('pages of other origins may not call')
    }
    expect(fake.calls).toEqual([])
  })

  it('is refused when it reads, or sends JSON, and the browser says that it is of another origin', async () => {
    const { server, fake } = await serve()
    for (const site of ['cross-site', 'same-site'])
      for (const [method, path] of [
        ['GET', '/v1/runs'],
        ['GET', '/v1/runs/r/events'],
        ['POST', '/v1/runs'],
      ] as const) {
        const headers = { 'sec-fetch-site': site }
        const reply = await server.call(method, path, { headers, ...(method === 'POST' && { json: body }) })
        expect([method, path, reply.status]).toEqual([method, path, 403])
      }
    expect(fake.calls).toEqual([])
  })

  it('that the server itself sent, that is named in MASON_CORS_ORIGINS, or that sends JSON may call', async () => {
    const { server } = await serve({ corsOrigins: ['https://app.example'] })
    const own = { origin: server.url, 'sec-fetch-site': 'same-origin' }
    const named = { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }
    for (const headers of [own, named, {}]) {
      const cancelled = await server.call('POST', '/v1/runs/r/cancel', {
        headers: headers as Record<string, string>,
      })
      expect([headers, cancelled.status]).not.toEqual([headers, 403])
    }
    // a browser has asked for the other origin before it sends this
    expect((await server.call('POST', '/v1/runs', { json: body, headers: { origin: page } })).status).toBe(
      202,
    )
    expect((await server.call('GET', '/v1/runs', { headers: { origin: page } })).status).toBe(200)
    const upload = await server.call('POST', '/v1/audio/transcriptions', {
      raw: '--x--',
      headers: { ...named, 'content-type': form },
    })
    expect(upload.status).not.toBe(403)
  })

  it('is not in question where a token is needed', async () => {
    const { server } = await serveGuarded()
    const cancelled = await server.call('POST', '/v1/runs/r/cancel', {
      token: 'all',
      headers: { origin: page },
    })
    expect(cancelled.status).not.toBe(403)
  })
})

describe('/metrics and /docs', () => {
  it('that are closed do not exist', async () => {
    const { server } = await serveGuarded({ metrics: 'off', docs: 'off' })
    for (const path of ['/metrics', '/docs', '/openapi.json', '/'])
      expect([path, (await server.call('GET', path, { token: 'the-admin' })).status]).toEqual([path, 404])
    expect((await server.call('GET', '/healthz')).status).toBe(200)
  })

  it('/metrics for admins takes the admin token and no other', async () => {
    const { server } = await serveGuarded({ metrics: 'admin' })
    expect((await server.call('GET', '/metrics')).status).toBe(401)
    expect((await server.call('GET', '/metrics', { token: 'boss' })).status).toBe(403)
    expect((await server.call('GET', '/metrics', { token: 'the-admin' })).status).toBe(200)
  })
})
