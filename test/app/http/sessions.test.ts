import { describe, expect, it } from 'vitest'
import { body, serve } from './test-server.ts'

describe('sessions', () => {
  it('sessions are listed', async () => {
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
    ['that start like random ones', '-_x'],
    ['that start like random ones', '_-x'],
  ])('sessions with ids %s are found, encoded or not', async (_, id) => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: { ...body, session_id: id } })
    for (const path of [`/v1/sessions/${id}`, `/v1/sessions/${encodeURIComponent(id)}`])
      expect(await server.call('GET', path)).toMatchObject({ status: 200, body: { id } })
  })

  it('a session that does not exist gets 404', async () => {
    const { server } = await serve()
    for (const [method, path] of [
      ['GET', '/v1/sessions/none'],
      ['DELETE', '/v1/sessions/none'],
      ['GET', '/v1/sessions/none/events'],
    ] as const)
      expect(await server.call(method, path)).toMatchObject({ status: 404, body: { code: 'not_found' } })
  })

  it('a deleted session gets 204 without a body', async () => {
    const { server } = await serve()
    await server.call('POST', '/v1/runs', { json: { ...body, session_id: 's1' } })
    const call = { headers: { 'content-type': 'application/json' } }
    expect(await server.call('DELETE', '/v1/sessions/s1', call)).toMatchObject({ status: 204, text: '' })
    expect((await server.call('DELETE', '/v1/sessions/s1')).status).toBe(404)
  })

  it('a session is forked at an action', async () => {
    const { server, fake } = await serve()
    await server.call('POST', '/v1/runs', { json: { ...body, session_id: 's1' } })
    const reply = await server.call('POST', '/v1/sessions/s1/fork', { json: { action_id: 4 } })
    expect(reply).toMatchObject({ status: 201, body: { id: 'ses_fork' } })
    expect(reply.headers.get('location')).toBe('/v1/sessions/ses_fork')
    expect(fake.calls.at(-1)).toEqual(['default', 'fork', 's1', 4])
    expect((await server.call('POST', '/v1/sessions/s2/fork', { json: { action_id: 4 } })).status).toBe(404)
  })

  it.each([0, -1, 1.5, '4', null, 2_147_483_648, 1e308])(
    'a session is not forked at %j',
    async (action_id) => {
      const { server } = await serve()
      const reply = await server.call('POST', '/v1/sessions/s1/fork', { json: { action_id } })
      expect([reply.status, reply.body.errors[0].pointer]).toEqual([422, '/action_id'])
    },
  )
})
