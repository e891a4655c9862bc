import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { type ErrorCode, MasonError } from '../../src/state/errors.ts'
import { body, serve } from '../app/http/test-server.ts'

describe('a problem', () => {
  it('a problem has every member of RFC 9457 and those of Mason', async () => {
    const { server } = await serve()
    const reply = await server.call('GET', '/v1/runs/none?x=1&y=2', { headers: { 'x-request-id': 'mine-1' } })
    expect(reply.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
    expect(reply.body).toEqual({
      type: 'urn:mason:problem:invalid_request',
      title: 'The request is not valid',
      status: 422,
      detail: 'the request has 2 errors',
      code: 'invalid_request',
      instance: '/v1/runs/none',
      request_id: 'mine-1',
      errors: [
        { pointer: '/x', detail: 'unknown field' },
        { pointer: '/y', detail: 'unknown field' },
      ],
    })
  })

  it.each<[ErrorCode, unknown, number, string | null]>([
    ['run_ended', undefined, 409, null],
    ['session_of_another_user', undefined, 409, null],
    ['input_answered', undefined, 409, null],
    ['idempotency_conflict', undefined, 422, null],
    ['not_found', undefined, 404, null],
    ['too_many_requests', { retry_after_s: 6.2 }, 429, '7'],
    ['too_many_requests', undefined, 429, '1'],
    ['database_unavailable', undefined, 503, '1'],
    ['queue_unavailable', { retry_after_s: 30 }, 503, '30'],
  ])('the code %s with the detail %j gets %i', async (code, detail, status, retryAfter) => {
    const { server, fake } = await serve()
    fake.failing.set('submit', new MasonError(code, 'what happened', { remedy: 'do this', detail }))
    const reply = await server.call('POST', '/v1/runs', { json: body })
    expect([reply.status, reply.body.status, reply.body.code]).toEqual([status, status, code])
    expect(reply.headers.get('retry-after')).toBe(retryAfter)
    if (status < 500) expect(reply.body).toMatchObject({ detail: 'what happened', remedy: 'do this' })
  })

  it('a problem has the field errors that the runtime found', async () => {
    const { server, fake } = await serve()
    const errors = [{ pointer: '/answer/0', detail: 'must be a number' }]
    fake.failing.set('answer', new MasonError('invalid_request', 'does not fit', { detail: { errors } }))
    const call = { json: { request_id: 'i', answer: ['x'] } }
    const reply = await server.call('POST', '/v1/runs/run_1/input', call)
    expect([reply.status, reply.body.errors]).toEqual([422, errors])
  })

  it('a problem of a request has errors where the whole of it is wrong', async () => {
    const { server, fake } = await serve()
    fake.failing.set('answer', new MasonError('invalid_request', 'there is no address'))
    const reply = await server.call('POST', '/v1/runs/run_1/input', { json: { request_id: 'i', answer: 1 } })
    expect([reply.status, reply.body.errors]).toEqual([422, [{ pointer: '', detail: 'there is no address' }]])
    const { detail, errors } = (await server.call('POST', '/v1/runs', { json: null })).body
    expect([detail, errors[0].pointer]).toEqual([expect.stringMatching(/^the body: \w/), ''])
  })

  it.each([
    new Error('secret'),
    new MasonError('poison', 'secret', { remedy: 'secret', detail: { errors: 'secret' } }),
  ])('an internal error reveals only the request id', async (error) => {
    const { server, fake } = await serve()
    fake.failing.set('submit', error)
    const reply = await server.call('POST', '/v1/runs', { json: body })
    expect([reply.status, reply.body.code]).toEqual([500, 'internal'])
    expect(reply.text).not.toMatch(/secret|poison|\.ts/)
    expect(reply.body.request_id).toBe(reply.headers.get('x-request-id'))
  })
})

describe('the request id', () => {
  it.each(['a', 'req_1.2:3@4/5+6=7-8', 'x'.repeat(128)])('the request id %s is kept', async (id) => {
    const { server } = await serve()
    const reply = await server.call('GET', '/healthz', { headers: { 'x-request-id': id } })
    expect(reply.headers.get('x-request-id')).toBe(id)
  })

  it.each(['', 'x'.repeat(129), 'a b', '-a', '"><script>'])('the request id %s is replaced', async (id) => {
    const { server } = await serve()
    const reply = await server.call('GET', '/v1/nowhere', { headers: { 'x-request-id': id } })
    expect(reply.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{24}$/)
  })
})

describe('a path', () => {
  it.each([
    '/nope',
    '/v1',
    '/v1/runs/r/nope',
    '/v1/memories/of/unknown',
    '/v1/runs/r/trajectory',
    '//v1/runs',
    '/docs/static/nope',
  ])('the path %s gets 404', async (path) => {
    const { server } = await serve()
    expect(await server.call('GET', path)).toMatchObject({ status: 404, body: { code: 'not_found' } })
  })

  it.each([
    ['PUT', '/v1/runs', 'GET, HEAD, POST'],
    ['DELETE', '/v1/runs/r', 'GET, HEAD'],
    ['GET', '/v1/runs/r/cancel', 'POST'],
    ['HEAD', '/v1/runs/r/events', 'GET'],
    ['PATCH', '/v1/sessions/s', 'DELETE, GET, HEAD'],
    ['POST', '/healthz', 'GET, HEAD'],
  ])('a %s of %s gets 405', async (method, path, allow) => {
    const { server } = await serve()
    const reply = await server.call(method, path)
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, allow])
  })

  it.each(['/v1/runs/%', '/v1/runs/%zz', '/v1/runs/%c3%28', '/v1/runs/%ED%A0%80/state'])(
    'the badly encoded path %s gets 400',
    async (path) => {
      const { server } = await serve()
      const reply = await server.call('GET', path)
      expect([reply.status, reply.body.code]).toEqual([400, 'malformed_request'])
      expect(reply.headers.get('x-request-id')).toBe(reply.body.request_id)
    },
  )

  it.each(['%00', '%20', 'a%0Ab', 'a'.repeat(201), '%F0%9F%92%A9'])(
    'the path of the run %s gets 422',
    async (id) => {
      const { server } = await serve()
      const reply = await server.call('GET', `/v1/runs/${id}`)
      expect([reply.status, reply.body.errors?.[0].pointer]).toEqual([422, '/id'])
    },
  )

  it('a path of thousands of characters gets 404', async () => {
    const { server } = await serve()
    expect((await server.call('GET', `/v1/runs/${'a'.repeat(9000)}`)).status).toBe(404)
  })
})

describe('a connection without HTTP', () => {
  it.each([
    ['garbage\r\n\r\n', 400, 'malformed_request'],
    ['GET /healthz HTTP/1.1\r\n\r\n', 400, 'malformed_request'],
    [`GET / HTTP/1.1\r\nhost: x\r\na: ${'a'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
  ])('bytes that are not HTTP get a problem', async (sent, status, code) => {
    const { server } = await serve()
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.end(sent)
    const answer = await text(socket)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain('x-request-id: req_')
    expect(answer).toContain(`"code":"${code}"`)
  })
})
