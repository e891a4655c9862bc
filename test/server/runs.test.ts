import { describe, expect, it } from 'vitest'
import { body, eventually, serve } from './setting.ts'

describe('POST /v1/runs', () => {
  it('answers 202 with where the run is', async () => {
    const { server } = await serve()
    const reply = await server.call('POST', '/v1/runs', { json: body })
    expect(reply.status).toBe(202)
    expect(reply.body).toEqual({ id: 'run_1', session_id: 'ses_run_1', turn: 1, status: 'queued' })
    expect(reply.headers.get('location')).toBe('/v1/runs/run_1')
    expect(reply.headers.get('idempotent-replayed')).toBeNull()
  })

  it('gives the runtime every field as it was sent', async () => {
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

  it('answers the same key and body with the same run', async () => {
    const { server } = await serve()
    const call = { json: body, headers: { 'idempotency-key': 'k 1!' } }
    const first = await server.call('POST', '/v1/runs', call)
    const again = await server.call('POST', '/v1/runs', call)
    expect([first.status, again.status]).toEqual([202, 200])
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.headers.get('location')).toBe('/v1/runs/run_1')
  })

  it('refuses the same key with another body', async () => {
    const { server } = await serve()
    const headers = { 'idempotency-key': 'k' }
    await server.call('POST', '/v1/runs', { json: body, headers })
    const reply = await server.call('POST', '/v1/runs', { json: { ...body, prompt: 'other' }, headers })
    expect([reply.status, reply.body.code]).toEqual([422, 'idempotency_conflict'])
  })

  it.each(['', 'x'.repeat(256), 'tab\there', 'umlaut-ä'])('refuses the key %j by name', async (key) => {
    const { server, fake } = await serve()
    const reply = await server.call('POST', '/v1/runs', { json: body, headers: { 'idempotency-key': key } })
    expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
    expect(reply.body.errors).toEqual([
      { pointer: '/idempotency-key', detail: expect.stringContaining('header idempotency-key') },
    ])
    expect(fake.calls).toEqual([])
  })

  it('takes a key of 255 characters', async () => {
    const { server } = await serve()
    const headers = { 'idempotency-key': '~'.repeat(255) }
    expect((await server.call('POST', '/v1/runs', { json: body, headers })).status).toBe(202)
  })
})

describe('POST /v1/runs/wait', () => {
  it('answers with the run once it has ended', async () => {
    const { server, fake } = await serve()
    const reply = server.call('POST', '/v1/runs/wait', { json: body })
    await eventually(() => fake.calls.some(([, method]) => method === 'wait'))
    fake.settle('run_1', 'completed')
    expect(await reply).toMatchObject({ status: 200, body: { id: 'run_1', status: 'completed' } })
    expect((await reply).headers.get('location')).toBe('/v1/runs/run_1')
  })

  it('stops waiting when the client leaves, and cancels nothing', async () => {
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

  it('says 503 and where the run is when the server closes', async () => {
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
  it('lists with a limit of 50 unless told', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    const reply = await server.call('GET', '/v1/runs')
    expect(reply).toMatchObject({ status: 200, body: { data: [{ id: 'run_1' }], next_cursor: 'more' } })
    expect(fake.calls.at(-1)).toEqual(['default', 'runs', { limit: 50 }])
  })

  it('passes every filter on', async () => {
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
  ])('refuses ?%s', async (query, pointer) => {
    const { server } = await serve()
    const reply = await server.call('GET', `/v1/runs?${query}`)
    expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
    expect(reply.body.errors.map((fault: { pointer: string }) => fault.pointer)).toEqual([pointer])
  })

  it('lists every fault of a query', async () => {
    const { server } = await serve()
    const reply = await server.call('GET', '/v1/runs?limit=0&status=x&colour=red&user_id=')
    expect(reply.body.errors.map((fault: { pointer: string }) => fault.pointer).sort()).toEqual([
      '/colour',
      '/limit',
      '/status',
      '/user_id',
    ])
  })
})

describe('one run', () => {
  it('is shown, and 404 when there is none', async () => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    expect(await server.call('GET', '/v1/runs/run_1')).toMatchObject({ status: 200, body: { id: 'run_1' } })
    expect(await server.call('GET', '/v1/runs/run_2')).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
  })

  it('is cancelled with a reason, without one and without a body', async () => {
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

  it('is not cancelled after its end', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    fake.settle('run_1', 'completed')
    const reply = await server.call('POST', '/v1/runs/run_1/cancel')
    expect([reply.status, reply.body.code]).toEqual([409, 'run_ended'])
  })

  it('takes an answer of any JSON', async () => {
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

  it('says which parts of an answer are missing', async () => {
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
