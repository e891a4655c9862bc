import { describe, expect, it } from 'vitest'
import { body, eventually, serve } from './test-server.ts'

const sha256 = 'a'.repeat(64)

describe('POST /v1/runs', () => {
  it('POST /v1/runs responds 202 with the location of the run', async () => {
    const { server } = await serve()
    const reply = await server.call('POST', '/v1/runs', { json: body })
    expect(reply.status).toBe(202)
    expect(reply.body).toEqual({ id: 'run_1', session_id: 'ses_run_1', turn: 1, status: 'queued' })
    expect(reply.headers.get('location')).toBe('/v1/runs/run_1')
    expect(reply.headers.get('idempotent-replayed')).toBeNull()
  })

  it('a number with more digits than a number holds is called too large, and no text', async () => {
    const { server } = await serve()
    const post = (raw: string) =>
      server.call('POST', '/v1/runs', { raw, headers: { 'content-type': 'application/json' } })
    for (const max of ['9007199254740993', '-12345678901234567890', '1e400', '-2.5E+4000']) {
      const reply = await post(`{"prompt":"x","user_id":"u1","limits":{"max_tokens":${max}}}`)
      expect(reply.body.errors).toEqual([
        { pointer: '/limits/max_tokens', detail: 'has more digits than a number holds; send a smaller one' },
      ])
    }
    for (const text of ['Infinity', '1e20', '0x1fffffffffffffff', '1234567890.1234567']) {
      const reply = await post(`{"prompt":"x","user_id":"u1","limits":{"max_tokens":"${text}"}}`)
      expect(reply.body.errors).toEqual([
        { pointer: '/limits/max_tokens', detail: expect.stringContaining('expected number') },
      ])
    }
  })

  it('POST /v1/runs passes every field to the runtime unchanged', async () => {
    const { server, fake } = await serve()
    const full = {
      ...body,
      session_id: 's1',
      business_id: 'default',
      files: [{ name: 'a.txt', type: 'text/plain', content_base64: 'YQ==' }],
      scenario: 'test',
      output: {
        style: 'short',
        structure: [{ id: 'a', expected: 'a number', type: 'number' }],
        tool: 'answer',
      },
      tools: ['calculate'],
      models: { planner: 'm' },
      limits: { max_steps: 5, max_tokens: 100, max_cost: 0.25, timeout_ms: 1000 },
      priority: 7,
      delay_ms: 10,
      metadata: { deep: [{ a: null, '': 'x' }] },
    }
    const reply = await server.call('POST', '/v1/runs', { json: full })
    expect(reply.status).toBe(202)
    expect(fake.calls[0]).toEqual(['default', 'submit', full, undefined])
  })

  it('POST /v1/runs with the same key and body returns the same run', async () => {
    const { server } = await serve()
    const call = { json: body, headers: { 'idempotency-key': 'k 1!' } }
    const first = await server.call('POST', '/v1/runs', call)
    const again = await server.call('POST', '/v1/runs', call)
    expect([first.status, again.status]).toEqual([202, 200])
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.headers.get('location')).toBe('/v1/runs/run_1')
  })

  it('POST /v1/runs refuses the same key with another body', async () => {
    const { server } = await serve()
    const headers = { 'idempotency-key': 'k' }
    await server.call('POST', '/v1/runs', { json: body, headers })
    const reply = await server.call('POST', '/v1/runs', { json: { ...body, prompt: 'other' }, headers })
    expect([reply.status, reply.body.code]).toEqual([422, 'idempotency_conflict'])
  })

  it.each(['', 'x'.repeat(256), 'tab\there', 'umlaut-ä'])(
    'POST /v1/runs refuses the key %j and names the header',
    async (key) => {
      const { server, fake } = await serve()
      const reply = await server.call('POST', '/v1/runs', { json: body, headers: { 'idempotency-key': key } })
      expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
      expect(reply.body.errors).toEqual([
        { pointer: '/idempotency-key', detail: expect.stringContaining('header idempotency-key') },
      ])
      expect(fake.calls).toEqual([])
    },
  )

  it('POST /v1/runs accepts a key of 255 characters', async () => {
    const { server } = await serve()
    const headers = { 'idempotency-key': '~'.repeat(255) }
    expect((await server.call('POST', '/v1/runs', { json: body, headers })).status).toBe(202)
  })
})

describe('POST /v1/runs/wait', () => {
  it('POST /v1/runs/wait returns the run once it has ended', async () => {
    const { server, fake } = await serve()
    const reply = server.call('POST', '/v1/runs/wait', { json: body })
    await eventually(() => fake.calls.some(([, method]) => method === 'wait'))
    fake.settle('run_1', 'completed')
    expect(await reply).toMatchObject({ status: 200, body: { id: 'run_1', status: 'completed' } })
    expect((await reply).headers.get('location')).toBe('/v1/runs/run_1')
  })

  it('POST /v1/runs/wait stops when the client disconnects and cancels nothing', async () => {
    const { server, fake } = await serve()
    const client = new AbortController()
    const reply = server.call('POST', '/v1/runs/wait', { json: body, signal: client.signal })
    await eventually(() => fake.calls.some(([, method]) => method === 'wait'))
    client.abort()
    await expect(reply).rejects.toThrow()
    await eventually(() => fake.calls.some((call) => call.at(-1) === 'aborted'))
    expect(fake.calls.map(([, method]) => method)).not.toContain('cancel')
    expect(fake.run('run_1').status).toBe('queued')
  })

  it('POST /v1/runs/wait responds 503 with the location of the run when the server closes', async () => {
    const { server, fake } = await serve()
    const reply = server.call('POST', '/v1/runs/wait', { json: body })
    await eventually(() => fake.calls.some(([, method]) => method === 'wait'))
    const closed = server.close()
    expect(await reply).toMatchObject({ status: 503, body: { code: 'shutting_down' } })
    expect((await reply).headers.get('location')).toBe('/v1/runs/run_1')
    expect((await reply).headers.get('retry-after')).toBe('1')
    await closed
  })
})

describe('GET /v1/runs', () => {
  it('GET /v1/runs has a limit of 50 by default', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    const reply = await server.call('GET', '/v1/runs')
    expect(reply).toMatchObject({ status: 200, body: { data: [{ id: 'run_1' }], next_cursor: 'more' } })
    expect(fake.calls.at(-1)).toEqual(['default', 'runs', { limit: 50 }])
  })

  it('GET /v1/runs passes every filter to the runtime', async () => {
    const { server, fake } = await serve()
    await server.call('GET', '/v1/runs?user_id=u&session_id=s&status=failed&limit=200&cursor=abc_-')
    expect(fake.calls.at(-1)).toEqual([
      'default',
      'runs',
      { user_id: 'u', session_id: 's', status: 'failed', limit: 200, cursor: 'abc_-' },
    ])
  })

  it.each([
    ['limit=0', '/limit'],
    ['limit=201', '/limit'],
    ['limit=ten', '/limit'],
    ['limit=1e1', '/limit'],
    ['limit=', '/limit'],
    ['limit=1&limit=2', '/limit'],
    ['limit=99999999999999999999', '/limit'],
    ['cursor=', '/cursor'],
    ['cursor=%00', '/cursor'],
    ['cursor=a%20b', '/cursor'],
    ['status=done', '/status'],
    ['user_id=%ED%A0%80', '/user_id'],
    ['session_id=%20', '/session_id'],
    ['colour=red', '/colour'],
    ['__proto__=1', '/__proto__'],
    ['business_id=%2F', '/business_id'],
  ])('GET /v1/runs refuses ?%s', async (query, pointer) => {
    const { server } = await serve()
    const reply = await server.call('GET', `/v1/runs?${query}`)
    expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
    expect(reply.body.errors.map((error: { pointer: string }) => error.pointer)).toEqual([pointer])
  })

  it('GET /v1/runs lists every error of a query', async () => {
    const { server } = await serve()
    const reply = await server.call('GET', '/v1/runs?limit=0&status=x&colour=red&user_id=')
    expect(reply.body.errors.map((error: { pointer: string }) => error.pointer).sort()).toEqual([
      '/colour',
      '/limit',
      '/status',
      '/user_id',
    ])
  })
})

describe('one run', () => {
  it('a parameter that is true or false says so', async () => {
    const { server } = await serve()
    const { body } = await server.call('GET', '/v1/runs?count=yes')
    expect(body.errors).toEqual([{ pointer: '/count', detail: 'must be true or false' }])
  })

  it('GET /v1/runs/{id} returns the run, and 404 when there is none', async () => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    expect(await server.call('GET', '/v1/runs/run_1')).toMatchObject({ status: 200, body: { id: 'run_1' } })
    expect(await server.call('GET', '/v1/runs/run_2')).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
  })

  it('a run is cancelled with a reason, without one and without a body', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    const path = '/v1/runs/run_1/cancel'
    for (const call of [
      { json: { reason: 'enough' } },
      { json: {} },
      {},
      { headers: { 'content-type': 'text/plain' } },
    ])
      expect(await server.call('POST', path, call)).toMatchObject({
        status: 202,
        body: { status: 'cancelled' },
      })
    const reasons = fake.calls.filter(([, method]) => method === 'cancel').map((call) => call[3])
    expect(reasons).toEqual(['enough', undefined, undefined, undefined])
  })

  it('a run that has ended is not cancelled', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    fake.settle('run_1', 'completed')
    const reply = await server.call('POST', '/v1/runs/run_1/cancel')
    expect([reply.status, reply.body.code]).toEqual([409, 'run_ended'])
  })

  it('an input request accepts any JSON as its answer', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    for (const answer of ['yes', 5, false, null, [1], { a: { b: 1 } }]) {
      const reply = await server.call('POST', '/v1/runs/run_1/input', {
        json: { request_id: 'inp_1', answer },
      })
      expect(reply).toMatchObject({ status: 202, body: { id: 'run_1' } })
      expect(fake.calls.at(-1)).toEqual(['default', 'answer', 'run_1', 'inp_1', answer])
    }
  })

  it('an incomplete answer to an input request gets an error for each missing field', async () => {
    const { server } = await serve()
    const reply = await server.call('POST', '/v1/runs/run_1/input', { json: { why: 1 } })
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toEqual([
      { pointer: '/request_id', detail: 'is required' },
      { pointer: '/answer', detail: 'is required' },
      { pointer: '/why', detail: 'unknown field' },
    ])
  })
})

describe('the state of a run', () => {
  it.each([
    ['', true],
    ['?inline=true', true],
    ['?inline=false', false],
  ])('the state is returned for "%s" with inline %s', async (query, inline) => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    const reply = await server.call('GET', `/v1/runs/run_1/state${query}`)
    expect(reply.status).toBe(200)
    expect(Object.keys(reply.body)).toContain('action_history')
    expect(fake.calls.at(-1)).toEqual(['default', 'state', 'run_1', inline])
  })

  it('the state gets 422 for another value of inline and 404 for no run', async () => {
    const { server } = await serve()
    expect((await server.call('GET', '/v1/runs/run_1/state?inline=no')).status).toBe(422)
    expect((await server.call('GET', '/v1/runs/run_1/state')).status).toBe(404)
  })

  it('a blob is sent as bytes that no browser runs', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    fake.blobs.set(sha256, Buffer.from('<script>'))
    const path = `/v1/runs/run_1/blobs/${sha256}`
    const reply = await server.call('GET', path)
    expect([reply.status, reply.text]).toEqual([200, '<script>'])
    expect(reply.headers.get('content-type')).toBe('application/octet-stream')
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff')
    expect(reply.headers.get('etag')).toBe(`"${sha256}"`)
    const again = await server.call('GET', path, { headers: { 'if-none-match': `"${sha256}"` } })
    expect([again.status, again.text]).toEqual([304, ''])
  })

  it('a blob that the run does not have is not found', async () => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    expect((await server.call('GET', `/v1/runs/run_1/blobs/${sha256}`)).status).toBe(404)
    expect((await server.call('GET', '/v1/runs/run_1/blobs/..%2F..')).status).toBe(422)
  })
})
