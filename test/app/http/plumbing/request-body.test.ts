import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Call, TestServer } from '../../../support/http.ts'
import { body, openServer, serve, serveGuarded } from '../test-server.ts'

const json = { 'content-type': 'application/json' }
/** One server for all that only post to it. */
let shared: TestServer
beforeAll(async () => {
  shared = (await openServer()).server
})
afterAll(() => shared.close())
const post = (call: Call) => shared.call('POST', '/v1/runs', call)

describe('a body', () => {
  it.each(['', '{', '{"prompt":"a"', 'undefined', '{"a":1,}', "{'a':1}", '\u0000', '[1', '{"a":"\n"}'])(
    'the body %j gets 400',
    async (raw) => {
      const reply = await post({ raw, headers: json })
      expect([reply.status, reply.body.code]).toEqual([400, 'malformed_json'])
    },
  )

  it('a body that is not UTF-8 gets 400', async () => {
    const reply = await post({ raw: Buffer.from('{"prompt":"\xff","user_id":"u"}', 'latin1'), headers: json })
    expect([reply.status, reply.body.code]).toEqual([400, 'malformed_json'])
  })

  it.each([
    ['text/plain', {}],
    ['application/x-www-form-urlencoded', {}],
    ['multipart/form-data; boundary=x', {}],
    ['application/json; charset=latin1', {}],
    ['nonsense', {}],
    ['application/json', { 'content-encoding': 'gzip' }],
  ])('a body of type %s %j gets 415', async (type, more) => {
    const reply = await post({ raw: JSON.stringify(body), headers: { 'content-type': type, ...more } })
    expect([reply.status, reply.body.code]).toEqual([415, 'unsupported_media_type'])
  })

  it('a content-type that is no media type gets 415, which says what to send', async () => {
    const types = [{ 'content-type': 'nonsense' }, { 'content-type': 'text/plain, text/html' }]
    for (const headers of types)
      expect((await post({ raw: 'x', headers })).body).toMatchObject({
        status: 415,
        detail: 'the content-type must be type/subtype',
      })
  })

  it('an empty content-encoding is none', async () => {
    const headers = { ...json, 'content-encoding': '' }
    expect((await post({ raw: JSON.stringify(body), headers })).status).toBe(202)
  })

  it.each(['application/json; charset=UTF-8', 'Application/JSON;charset="utf-8"', 'application/vnd.x+json'])(
    'a body of type %s is accepted',
    async (type) => {
      const reply = await post({ raw: JSON.stringify(body), headers: { 'content-type': type } })
      expect(reply.status).toBe(202)
    },
  )

  it.each(['[]', 'null', '"text"', '5', 'true'])('the body %s gets 422', async (raw) => {
    const reply = await post({ raw, headers: json })
    expect([reply.status, reply.body.errors[0].pointer]).toEqual([422, ''])
  })

  it('a body just under 32 MiB is accepted, one over it gets 413', async () => {
    const file = (bytes: number) => ({
      ...body,
      files: [{ name: 'a', type: 'b', content_base64: Buffer.alloc(bytes).toString('base64') }],
    })
    expect((await post({ json: file(24_000_000) })).status).toBe(202)
    const reply = await post({ json: file(26_000_000) })
    expect([reply.status, reply.body.code]).toEqual([413, 'payload_too_large'])
  })

  it('a body of more than 1 MiB gets 413 where no token is needed', async () => {
    const reply = await shared.call('POST', '/console/session', { json: { token: 'x'.repeat(2 ** 20) } })
    expect(reply).toMatchObject({ status: 413, body: { detail: 'the body is larger than 1 MiB' } })
  })

  it('a body nested a million levels deep gets 422 at once', async () => {
    const raw = `{"metadata":{"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}}`
    const reply = await post({ raw, headers: json })
    expect([reply.status, reply.body.errors[0].detail]).toEqual([
      422,
      'nested deeper than 100 levels, a fixed limit; send large data as a file',
    ])
  })

  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`field ${index}`, 1]))

  it.each([
    ['a million numbers', { ...body, metadata: { a: Array(1_000_000).fill(0) } }, 'more than 50000 values'],
    ['60,000 objects', { ...body, metadata: { a: Array(60_000).fill({}) } }, 'more than 50000 values'],
    [
      'a name of 10,001 characters',
      { ...body, ['k'.repeat(10_001)]: 1 },
      'a field name of more than 10000 characters',
    ],
    ['11,000 names in one object', { ...body, ...fields(11_000) }, 'more than 10000 different field names'],
    [
      '11,000 names in many objects',
      { ...body, metadata: { a: Object.entries(fields(11_000)).map(([name]) => ({ [name]: 1 })) } },
      'more than 10000 different field names',
    ],
  ])('a body of %s gets 422 with the limit', async (_, json, limit) => {
    const reply = await post({ json })
    expect([reply.status, reply.body.errors]).toEqual([
      422,
      [{ pointer: '', detail: `${limit}, a fixed limit; send large data as a file` }],
    ])
  })

  const long = 'k'.repeat(10_001)
  it.each([
    ['a value that ends before its text does', `{"prompt":"a","b":"${long}":1}`],
    ['quotes of another kind', `{"a":[],'prompt':'${long}','b':1}`],
    ['a name without quotes', `{"a":[${'1,'.repeat(6000)}1],metadata:1}`],
    ['no braces', `"a" ${long}: 1`],
  ])('a body with %s is no JSON, whatever stands before a colon', async (_, raw) => {
    const reply = await post({ raw, headers: json })
    expect([reply.status, reply.body.code]).toEqual([400, 'malformed_json'])
    expect(reply.body.detail).toMatch(/^the body is not JSON from position \d+ on/)
  })

  it('a name may have 10,000 characters, and as much white space as it likes', async () => {
    const raw = `{"metadata":1,"${'k'.repeat(10_000)}"${' '.repeat(10_001)}:1}`
    const reply = await post({ raw, headers: json })
    expect(reply.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toContain('/metadata')
  })

  it('an equal name counts once, whatever stands between it and its colon', async () => {
    const rows = JSON.stringify(Array(12_000).fill({ a: 1, b: 2 }))
      .replaceAll(':', ' \n:')
      .replace(' ', '')
    const reply = await post({ raw: `{"metadata":{"a":${rows}}}`, headers: json })
    expect(reply.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toContain('/metadata')
  })

  it('a body with text that looks nested is accepted', async () => {
    const prompt = '[{"\\'.repeat(1000)
    expect((await post({ json: { ...body, prompt } })).status).toBe(202)
  })

  it.each([
    ['{"prompt":"p","user_id":"u","__proto__":{"a":1}}', '/__proto__'],
    ['{"prompt":"p","user_id":"u","metadata":{"x":[{"__proto__":1}]}}', '/metadata/x/0/__proto__'],
    ['{"prompt":"p","user_id":"u","metadata":{"\\u005f_proto__":{}}}', '/metadata/__proto__'],
    ['{"prompt":"p","user_id":"u","constructor":{"prototype":1}}', '/constructor'],
  ])('the body %s with a prototype key gets 422', async (raw, pointer) => {
    const reply = await post({ raw, headers: json })
    expect([reply.status, reply.body.errors[0].pointer]).toEqual([422, pointer])
    expect(({} as { a?: unknown }).a).toBeUndefined()
  })

  it.each([
    [{ prompt: undefined }, '/prompt'],
    [{ prompt: '' }, '/prompt'],
    [{ prompt: 5 }, '/prompt'],
    [{ user_id: undefined }, '/user_id'],
    [{ user_id: 'a b' }, '/user_id'],
    [{ user_id: 'a\u0000' }, '/user_id'],
    [{ files: [{ name: '__proto__', type: 't', content_base64: '' }] }, '/files/0/name'],
    [{ files: [{ name: 'a', type: 'text/\u0000', content_base64: '' }] }, '/files/0/type'],
    [{ files: [{ name: 'a', type: 'text/\ud800', content_base64: '' }] }, '/files/0/type'],
    [{ session_id: '' }, '/session_id'],
    [{ session_id: '\ud800' }, '/session_id'],
    [{ session_id: '__proto__' }, '/session_id'],
    [{ session_id: '.a' }, '/session_id'],
    [{ business_id: 5 }, '/business_id'],
    [{ colour: 'red' }, '/colour'],
    [{ 'a/b~c': 1 }, '/a~1b~0c'],
    [{ files: {} }, '/files'],
    [{ files: [{ type: 't', content_base64: '' }] }, '/files/0/name'],
    ...['../x', '/x', 'a//x', 'a/./x', 'a/../x', 'a/', 'a\\x', 'a/\n'].map((name): [object, string] => [
      { files: [{ name, type: 't', content_base64: '' }] },
      '/files/0/name',
    ]),
    [{ files: ['a', 'a/x'].map((name) => ({ name, type: 't', content_base64: '' })) }, '/files'],
    [{ files: [{ name: 'n', type: 't', content_base64: '?' }] }, '/files/0/content_base64'],
    [{ files: [{ name: 'n', type: 't', content_base64: '', size: 1 }] }, '/files/0/size'],
    [{ files: [{ name: 'n', type: 't', url: 'file:///etc/passwd' }] }, '/files/0/url'],
    [{ files: [{ name: 'n', type: 't' }] }, '/files/0'],
    [
      { files: [{ name: 'n', type: 't', mapping: { provider: 'ftp', path: 'p' } }] },
      '/files/0/mapping/provider',
    ],
    [{ scenario: 1 }, '/scenario'],
    [{ output: { style: 1 } }, '/output/style'],
    [{ output: { structure: 'all' } }, '/output/structure'],
    [{ output: { structure: [1] } }, '/output/structure/0'],
    [{ output: { structure: Array(51).fill(1) } }, '/output/structure'],
    [{ output: { structure: [{ id: 'a', expected: 'b', type: 'text', of: 1 }] } }, '/output/structure/0/of'],
    [{ output: { structure: Array(2).fill({ id: 'a', expected: 'b', type: 'text' }) } }, '/output/structure'],
    [{ output: { structure: [{ id: 'a', expected: 'b', type: 'c' }] } }, '/output/structure/0/type'],
    [{ output: { tool: '' } }, '/output/tool'],
    [{ tools: 'all' }, '/tools'],
    [{ tools: [1] }, '/tools/0'],
    [{ models: { vision: 'x' } }, '/models/vision'],
    [{ limits: { max_steps: 0 } }, '/limits/max_steps'],
    [{ limits: { max_steps: 1e308 } }, '/limits/max_steps'],
    [{ limits: { max_cost: 0 } }, '/limits/max_cost'],
    [{ limits: { max_cost: '1' } }, '/limits/max_cost'],
    [{ limits: { timeout_ms: '1' } }, '/limits/timeout_ms'],
    [{ priority: 101 }, '/priority'],
    [{ priority: 1.5 }, '/priority'],
    [{ delay_ms: -1 }, '/delay_ms'],
    [{ metadata: [] }, '/metadata'],
    [{ webhook_url: 'ftp://example.com/hooks' }, '/webhook_url'],
  ])('the body %j has its error at %s', async (change, pointer) => {
    const reply = await post({ json: { ...body, ...change } })
    expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
    expect([...new Set(reply.body.errors.map((error: { pointer: string }) => error.pointer))]).toEqual([
      pointer,
    ])
  })

  it.each([[[]], ['session']])('the structure %j is accepted', async (structure) => {
    expect((await post({ json: { ...body, output: { structure } } })).status).toBe(202)
  })

  it('a structure of the wrong type is refused with what to send', async () => {
    const reply = await post({ json: { ...body, output: { structure: {} } } })
    expect(reply.body.errors).toEqual([
      { pointer: '/output/structure', detail: 'must be a list of entries or "session"' },
    ])
  })

  it('a request gets the errors of body, query and headers together', async () => {
    const { server } = await serve()
    const reply = await server.call('POST', '/v1/runs?colour=red', {
      json: { user_id: '', files: [{ name: '' }], limits: { a: 1, b: 2 } },
      headers: { 'idempotency-key': 'x'.repeat(300) },
    })
    expect(reply.body.errors.map((error: { pointer: string }) => error.pointer).sort()).toEqual([
      '/colour',
      '/files/0',
      '/files/0/name',
      '/files/0/type',
      '/idempotency-key',
      '/limits/a',
      '/limits/b',
      '/prompt',
      '/user_id',
    ])
  })

  it('a body with very many errors gets a short response', async () => {
    const reply = await post({ json: { ...fields(9000), ['long'.repeat(2000)]: 1 } })
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toHaveLength(1000)
  })

  it.each(['GET /v1/runs', 'TRACE /v1/runs', 'POST /v1/runs', 'POST /nowhere'])(
    'a body that arrives after the response to %s is decided does not reset the connection',
    async (line) => {
      const { server } = await serve({ auth: 'required' })
      // the wait for the rest of a body must not time out on a machine that stalls
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      onTestFinished(() => void vi.useRealTimers())
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
      const answer = text(socket)
      socket.write(`${line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 4\r\n\r\n`)
      await once(server.app.server, 'request')
      for (let turn = 0; turn < 50; turn++) await setImmediate()
      // a response sent by now would be lost to the reset that these bytes cause
      expect(socket.bytesRead).toBe(0)
      socket.write('null')
      expect(await answer).toMatch(/^HTTP\/1\.1 40[145] /)
    },
  )

  const expectContinue = async (server: TestServer, head: string, content: string) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    let answer = ''
    socket.on('data', (bytes) => {
      // the body follows once it is asked for
      if (answer === '' && String(bytes).startsWith('HTTP/1.1 100')) socket.write(content)
      answer += bytes
    })
    socket.write(`${head}\r\nhost: localhost\r\nconnection: close\r\nexpect: 100-continue\r\n\r\n`)
    await once(socket, 'close')
    return answer
  }

  it.each([
    ['413', 'POST /v1/runs', 40_000_000, 'application/json'],
    ['413', 'POST /v1/runs', 4_000_000_000, 'application/json'],
    ['413', 'POST /v1/chat/completions', 33_554_433, 'application/json'],
    ['429', 'POST /v1/runs', 30_000_000, 'application/json'],
  ])('one that gets %s at %s for its %i bytes is not asked for', async (status, line, length, type) => {
    const { server } = await serve({ bodyMemory: { processBytes: 90_000_000, tokenBytes: 20_000_000 } })
    const head = `${line} HTTP/1.1\r\ncontent-type: ${type}\r\ncontent-length: ${length}`
    expect((await expectContinue(server, head, '')).slice(0, 12)).toBe(`HTTP/1.1 ${status}`)
  })

  it('one without a token is not asked for, one that is taken is', async () => {
    const json = JSON.stringify(body)
    const head = (token: string) =>
      `POST /v1/runs HTTP/1.1\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${json.length}`
    const { server } = await serveGuarded()
    expect(await expectContinue(server, head('none'), json)).toMatch(/^HTTP\/1\.1 401/)
    expect(await expectContinue(server, head('all'), json)).toMatch(/^HTTP\/1\.1 100 [\s\S]*\nHTTP\/1\.1 202/)
  })
})
