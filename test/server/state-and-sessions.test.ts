import { describe, expect, it } from 'vitest'
import { body, serve } from './setting.ts'

const sha256 = 'a'.repeat(64)

describe('the state of a run', () => {
  it.each([
    ['', true],
    ['?inline=true', true],
    ['?inline=false', false],
  ])('is given for "%s" with inline %s', async (query, inline) => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    const reply = await server.call('GET', `/v1/runs/run_1/state${query}`)
    expect(reply.status).toBe(200)
    expect(Object.keys(reply.body)).toContain('action_history')
    expect(fake.calls.at(-1)).toEqual(['default', 'state', 'run_1', inline])
  })

  it('is 422 for another inline and 404 for no run', async () => {
    const { server } = await serve()
    expect((await server.call('GET', '/v1/runs/run_1/state?inline=no')).status).toBe(422)
    expect((await server.call('GET', '/v1/runs/run_1/state')).status).toBe(404)
  })

  it('has blobs, sent as bytes nobody runs', async () => {
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

  it('has no other blobs', async () => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: body })
    expect((await server.call('GET', `/v1/runs/run_1/blobs/${sha256}`)).status).toBe(404)
    expect((await server.call('GET', '/v1/runs/run_1/blobs/..%2F..')).status).toBe(422)
  })
})

describe('sessions', () => {
  it('are listed', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: { ...body, session_id: 'chat:1@home' } })
    const reply = await server.call('GET', '/v1/sessions?user_id=u1&limit=3')
    expect(reply.body).toMatchObject({
      data: [{ id: 'chat:1@home', turns: [{ run_id: 'run_1' }] }],
      next_cursor: null,
    })
    expect(fake.calls.at(-1)).toEqual(['default', 'sessions', { user_id: 'u1', limit: 3 }])
  })

  it.each([
    ['of 200 characters', `a${':'.repeat(199)}`],
    ['that begin as random ones do', '-_x'],
    ['that begin as random ones do', '_-x'],
  ])('are shown under names %s, encoded or not', async (_, id) => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: { ...body, session_id: id } })
    for (const path of [`/v1/sessions/${id}`, `/v1/sessions/${encodeURIComponent(id)}`])
      expect(await server.call('GET', path)).toMatchObject({ status: 200, body: { id } })
  })

  it('are 404 when they are not there', async () => {
    const { server } = await serve()
    for (const [method, path] of [
      ['GET', '/v1/sessions/none'],
      ['DELETE', '/v1/sessions/none'],
      ['GET', '/v1/sessions/none/events'],
    ] as const)
      expect(await server.call(method, path)).toMatchObject({ status: 404, body: { code: 'not_found' } })
  })

  it('are deleted with nothing left to say', async () => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: { ...body, session_id: 's1' } })
    const call = { headers: { 'content-type': 'application/json' } }
    expect(await server.call('DELETE', '/v1/sessions/s1', call)).toMatchObject({ status: 204, text: '' })
    expect((await server.call('DELETE', '/v1/sessions/s1')).status).toBe(404)
  })

  it('are forked at an action', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: { ...body, session_id: 's1' } })
    const reply = await server.call('POST', '/v1/sessions/s1/fork', { json: { action_id: 4 } })
    expect(reply).toMatchObject({ status: 201, body: { id: 'ses_fork' } })
    expect(reply.headers.get('location')).toBe('/v1/sessions/ses_fork')
    expect(fake.calls.at(-1)).toEqual(['default', 'fork', 's1', 4])
    expect((await server.call('POST', '/v1/sessions/s2/fork', { json: { action_id: 4 } })).status).toBe(404)
  })

  it.each([0, -1, 1.5, '4', null, 2_147_483_648, 1e308])('are not forked at %j', async (action_id) => {
    const { server } = await serve()
    const reply = await server.call('POST', '/v1/sessions/s1/fork', { json: { action_id } })
    expect([reply.status, reply.body.errors[0].pointer]).toEqual([422, '/action_id'])
  })
})
