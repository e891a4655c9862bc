import { connect } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import type { RunEvent } from '../../../src/state/run-view.ts'
import { allEvents, takeEvents } from '../../support/http.ts'
import { body, eventually, serve, serveGuarded } from './test-server.ts'

const action = (id: number, summary = 's'): RunEvent => ({
  event: 'action',
  id,
  data: {
    id,
    node: 'planner',
    preparation: '',
    summary,
    result: {},
    context: null,
    relevance: 1,
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    next: ['answer'],
    run_id: 'run_1',
    turn: 1,
    ...{ at: '2026-01-02T03:04:05.678Z', started_at: null, ms: null, attempt: 1, worker: null },
  },
})
const status: RunEvent = { event: 'status', id: 0, data: { run_id: 'run_1', turn: 1, status: 'running' } }
const delta: RunEvent = {
  event: 'delta',
  data: { run_id: 'run_1', node: 'answer', call: null, attempt: 1, text: 'a\r\nb\u2028: c' },
}

/** A server with one run, and the source of its latest stream. */
const serveRun = async (options: Parameters<typeof serve>[0] = {}) => {
  const setup = await serve(options)
  await setup.server.call('POST', '/v1/runs', { json: { ...body, session_id: 's1' } })
  const stream = async () => {
    await eventually(() => setup.fake.streams.length > 0)
    const latest = setup.fake.streams.at(-1)
    if (!latest) throw new Error('no stream')
    return latest
  }
  return { ...setup, stream }
}

describe('a stream of events', () => {
  it('a stream forbids proxies to buffer, store or change it', async () => {
    const { server } = await serveRun()
    const followed = await server.follow('/v1/runs/run_1/events')
    expect(followed.status).toBe(200)
    expect(followed.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(followed.headers.get('cache-control')).toBe('no-store, no-transform')
    expect(followed.headers.get('x-accel-buffering')).toBe('no')
    expect(followed.headers.get('x-request-id')).toMatch(/^req_/)
    expect(followed.headers.get('x-content-type-options')).toBe('nosniff')
    followed.leave()
  })

  it('a stream sends events in order, with their ids, and ends with its source', async () => {
    const { server, fake, stream } = await serveRun()
    const followed = await server.follow('/v1/runs/run_1/events')
    const feed = await stream()
    feed.push(status, action(1), delta, action(2), { event: 'done', data: fake.run('run_1') })
    feed.end()
    const seen = await allEvents(followed)
    expect(seen.map(({ event, id }) => [event, id])).toEqual([
      ['status', 0],
      ['action', 1],
      ['delta', null],
      ['action', 2],
      ['done', null],
    ])
    expect(seen[1]?.data).toEqual(action(1).data)
    expect(seen[2]?.data).toEqual(delta.data)
    expect(seen[4]?.data.id).toBe('run_1')
  })

  it('a stream writes each event as id, event and one line of data', async () => {
    const { server, stream } = await serveRun()
    const response = fetch(`${server.url}/v1/runs/run_1/events`)
    const feed = await stream()
    feed.push(status, delta)
    feed.end()
    expect(await (await response).text()).toBe(
      `id: 0\nevent: status\ndata: ${JSON.stringify(status.data)}\n\nevent: delta\ndata: ${JSON.stringify(delta.data)}\n\n`,
    )
  })

  it('comments keep a stream open', async () => {
    const { server, stream } = await serveRun({ keepAliveMs: 10 })
    const followed = await server.follow('/v1/runs/run_1/events')
    const feed = await stream()
    const all = allEvents(followed)
    await eventually(() => followed.comments.length >= 2)
    expect(followed.comments[0]).toBe('keep-alive')
    feed.push(action(1))
    feed.end()
    expect(await all).toHaveLength(1)
  })

  it.each([
    ['', {}, 0],
    ['?after=0', {}, 0],
    ['?after=7', {}, 7],
    ['', { 'last-event-id': '9' }, 9],
    ['?after=7', { 'last-event-id': '9' }, 9],
    ['?after=7', { 'last-event-id': '0' }, 0],
    ['?after=7', { 'last-event-id': '' }, 7],
    ['?after=-1', {}, 0],
    ['?after=7', { 'last-event-id': '-1' }, 0],
  ])('a stream requested by "%s" %j continues after %i', async (query, headers, after) => {
    const { server, stream } = await serveRun()
    for (const [path, source] of [
      ['/v1/runs/run_1/events', { run_id: 'run_1' }],
      ['/v1/sessions/s1/events', { session_id: 's1' }],
    ] as const) {
      const followed = await server.follow(path + query, { headers })
      await eventually(async () => JSON.stringify((await stream()).source) === JSON.stringify(source))
      expect((await stream()).after).toBe(after)
      followed.leave()
    }
  })

  it.each([
    ['?after=-2', {}, '/after'],
    ['?after=', {}, '/after'],
    ['?after=1.5', {}, '/after'],
    ['?after=0x10', {}, '/after'],
    ['?after=99999999999', {}, '/after'],
    ['?after=1&after=2', {}, '/after'],
    ['', { 'last-event-id': '-2' }, '/last-event-id'],
    ['', { 'last-event-id': '17.42' }, '/last-event-id'],
    ['?after=1', { 'last-event-id': 'abc' }, '/last-event-id'],
  ])('a stream requested by "%s" %j is refused', async (query, headers, pointer) => {
    const { server, fake } = await serveRun()
    const reply = await server.call('GET', `/v1/runs/run_1/events${query}`, { headers })
    expect([reply.status, reply.body.errors[0].pointer]).toEqual([422, pointer])
    expect(fake.streams).toEqual([])
  })

  it('a stream that may not start gets 404, 401 or 403', async () => {
    const { server } = await serveGuarded()
    for (const path of ['/v1/runs/none/events', '/v1/sessions/none/events']) {
      expect(await server.call('GET', path, { token: 'all' })).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      })
      expect((await server.call('GET', path)).status).toBe(401)
      expect((await server.call('GET', path, { token: 'submitter' })).status).toBe(403)
    }
  })

  it('a stream ends without an error event when its source fails', async () => {
    const { server, stream } = await serveRun()
    const followed = await server.follow('/v1/runs/run_1/events')
    const feed = await stream()
    feed.push(action(1))
    feed.fail(new Error('database away'))
    expect((await allEvents(followed)).map(({ id }) => id)).toEqual([1])
  })

  it('a stream closes its source when the client disconnects', async () => {
    const { server, fake, stream } = await serveRun()
    const followed = await server.follow('/v1/runs/run_1/events')
    const feed = await stream()
    feed.push(action(1))
    await takeEvents(followed, 1)
    followed.leave()
    await eventually(() => feed.over)
    expect(feed.signal.aborted).toBe(true)
    expect(fake.calls.map(([, method]) => method)).not.toContain('cancel')
    expect((await server.call('GET', '/metrics')).text).toContain('mason_event_streams 0')
  })

  it('a stream reads few events for a client that stopped reading', async () => {
    const { server, stream } = await serveRun({ keepAliveMs: 5 })
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.pause()
    socket.write('GET /v1/runs/run_1/events HTTP/1.1\r\nhost: localhost\r\n\r\n')
    const feed = await stream()
    const big = 'x'.repeat(100_000)
    feed.push(...Array.from({ length: 2000 }, (_, index) => action(index + 1, big)))
    let last = -1
    await vi.waitUntil(
      () => {
        const still = feed.taken === last
        last = feed.taken
        return still && last > 0
      },
      { interval: 200, timeout: 90_000 },
    )
    expect(feed.taken).toBeLessThan(200)
    const before = feed.taken
    socket.resume()
    await eventually(() => feed.taken > before)
    socket.destroy()
    await eventually(() => feed.over)
    expect(feed.signal.aborted).toBe(true)
  })

  it('a stream ends at once when the server closes, also for a client that does not read', async () => {
    // what is short has an hour to finish
    const { server, stream } = await serveRun({ drainMs: 3_600_000 })
    const followed = await server.follow('/v1/runs/run_1/events')
    const reading = await stream()
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.on('error', () => undefined).pause()
    socket.write('GET /v1/sessions/s1/events HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await eventually(async () => (await stream()) !== reading)
    const stalled = await stream()
    stalled.push(...Array.from({ length: 500 }, (_, index) => action(index + 1, 'x'.repeat(100_000))))
    await eventually(() => stalled.taken > 0)
    const all = allEvents(followed)
    await server.close()
    expect(await all).toEqual([])
    await eventually(() => reading.over && stalled.over)
    socket.destroy()
  })
})
