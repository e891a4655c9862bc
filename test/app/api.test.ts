// backends: either

import { describe, expect } from 'vitest'
import { actionEventSchema, runViewSchema, sessionViewSchema } from '../../src/state/run-view.ts'
import { runtimeStateSchema } from '../../src/state/runtime-state.ts'
import { unique } from '../support/backend.ts'
import type { FakeModel } from '../support/fake-model/fake-model.ts'
import { allEvents, type Reply, type TestServer } from '../support/http.ts'
import { adminToken, runtimeTest as test } from '../support/integration-test.ts'
import { checkInvariants } from '../support/invariants.ts'
import { until } from '../support/runs.ts'
import { deadline, type TestRuntime } from '../support/test-runtime.ts'

let model: FakeModel
let runtime: TestRuntime
let server: TestServer

test.beforeAll(({ model: m, runtime: r, server: s }) => {
  ;[model, runtime, server] = [m, r, s]
})

/** What the planner's model answers from now on, in this order; the last answer repeats. */
const planner = (...replies: object[]) => {
  model.reset()
  model.script({ planner: replies } as never)
}
const call = (
  method: string,
  path: string,
  json?: unknown,
  headers?: Record<string, string>,
): Promise<Reply> =>
  server.call(method, path, {
    token: adminToken,
    ...(json !== undefined && { json }),
    ...(headers && { headers }),
  })
const body = (more: object = {}) => ({ prompt: 'Say hello', user_id: 'u1', ...more })
/** Or it would ask for what the next test's model says. */
const ended = ({ body: { id } }: Reply) => runtime.of('default').wait(id, deadline())

const makeToken = async (business_id: string, roles: string[]): Promise<string> => {
  const made = await call('POST', '/admin/v1/tokens', { business_id, label: 'test', roles })
  expect(made.status).toBe(201)
  return made.body.token
}

describe('POST /v1/runs', () => {
  test('answers 202 with where the run is, and the run gets done', async () => {
    planner({ text: 'Hello.' })
    const accepted = await call('POST', '/v1/runs', body())
    expect(accepted.status).toBe(202)
    expect(accepted.body).toEqual({
      id: expect.any(String),
      session_id: expect.any(String),
      turn: 1,
      status: 'queued',
    })
    expect(accepted.headers.get('location')).toBe(`/v1/runs/${accepted.body.id}`)
    expect(accepted.headers.get('x-request-id')).toBeTruthy()
    const followed = await server.follow(`/v1/runs/${accepted.body.id}/events`, { token: adminToken })
    const events = await allEvents(followed)
    expect(events.at(-1)?.event).toBe('done')
    expect(runViewSchema.parse(events.at(-1)?.data)).toMatchObject({ status: 'completed', answer: 'Hello.' })
    const shown = await call('GET', `/v1/runs/${accepted.body.id}`)
    expect(shown.body).toEqual(events.at(-1)?.data)
  })

  test('gives the same run for the same key and body, whatever the order of its fields', async () => {
    planner({ text: 'Hello.' })
    const key = { 'idempotency-key': unique('key') }
    const first = await call(
      'POST',
      '/v1/runs',
      { prompt: 'a', user_id: 'u1', metadata: { x: 1, y: 2 } },
      key,
    )
    const again = await call(
      'POST',
      '/v1/runs',
      { metadata: { y: 2, x: 1 }, user_id: 'u1', prompt: 'a' },
      key,
    )
    expect(again.status).toBe(200)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
    const other = await call('POST', '/v1/runs', { prompt: 'b', user_id: 'u1' }, key)
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_conflict'])
    await ended(first)
  })

  test('keeps the digits of an integer beyond 2^53, and refuses it where a number is asked for', async () => {
    planner({ text: 'Hello.' })
    const send = (more: string) =>
      server.call('POST', '/v1/runs', {
        token: adminToken,
        headers: { 'content-type': 'application/json' },
        raw: `{"prompt": "Hi", "user_id": "u1", ${more}}`,
      })
    const accepted = await send(
      '"metadata": {"order": 9007199254740993, "in": [{"n": -12345678901234567890}], "k": 7}',
    )
    const { metadata } = await ended(accepted)
    expect(metadata).toEqual({ order: '9007199254740993', in: [{ n: '-12345678901234567890' }], k: 7 })
    const refused = await send('"limits": {"max_tokens": 9007199254740993}')
    expect([refused.status, refused.body.errors[0].pointer]).toEqual([422, '/limits/max_tokens'])
  })

  test('refuses the session of another user, unknown tools and models, and fields not built yet, each by its pointer', async () => {
    planner({ text: 'Hello.' })
    const session_id = unique('s')
    await ended(await call('POST', '/v1/runs', body({ session_id })))
    const foreign = await call('POST', '/v1/runs', body({ session_id, user_id: 'u2' }))
    expect([foreign.status, foreign.body.code]).toEqual([409, 'session_of_another_user'])
    const unbuilt = await call(
      'POST',
      '/v1/runs',
      body({ webhook_url: 'example.com', limits: { max_cost: -1 }, nonsense: 1 }),
    )
    expect(unbuilt.status).toBe(422)
    expect(unbuilt.body.errors.map((error: { pointer: string }) => error.pointer).sort()).toEqual([
      '/limits/max_cost',
      '/nonsense',
      '/webhook_url',
    ])
    const unknown = await call(
      'POST',
      '/v1/runs',
      body({ tools: ['calculate', 'fly'], output: { tool: 'sing' } }),
    )
    expect(unknown.body.errors.map((error: { pointer: string }) => error.pointer)).toEqual([
      '/tools/1',
      '/output/tool',
    ])
  })
})

test('a route without a body refuses the fields of one, which it would drop, and takes an empty one', async () => {
  const { paths } = (await call('GET', '/openapi.json')).body
  type Operation = { requestBody?: object; security?: { bearer?: string[] }[] }
  const routes = Object.entries<Record<string, Operation>>(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([method]) => ['post', 'delete'].includes(method))
      .filter(([, { requestBody, security }]) => !requestBody && security?.[0]?.bearer?.[0] !== 'agent')
      .map(([method]) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'none')] as const),
  )
  expect(routes).toContainEqual(['POST', '/v1/runs/none/retry'])
  for (const [method, path] of routes.filter(([, path]) => /^\/(admin\/)?v1/.test(path))) {
    const { status, body } = await call(method, path, { nonsense: 1 })
    expect([path, status, body.errors]).toEqual([
      path,
      422,
      [{ pointer: '/nonsense', detail: 'unknown field' }],
    ])
  }
  expect((await call('POST', '/v1/runs/none/retry', {})).status).toBe(404)
})

describe('POST /v1/runs/wait', () => {
  test('answers with the run once it has ended', async () => {
    planner({ text: 'Hello.' })
    const done = await call('POST', '/v1/runs/wait', body({ metadata: { order: 7 } }))
    expect(done.status).toBe(200)
    expect(runViewSchema.parse(done.body)).toMatchObject({
      status: 'completed',
      metadata: { order: 7 },
      finish_reason: 'answered',
    })
  })

  test('answers with the question when the run needs a person, and input goes on with it', async () => {
    planner(
      {
        tool_calls: [{ id: 'c1', name: 'ask_user', arguments: '{"question":"Which?","options":["a","b"]}' }],
      },
      { text: 'You chose b.' },
    )
    const asked = await call('POST', '/v1/runs/wait', body())
    expect(asked.body).toMatchObject({
      status: 'input_required',
      input_request: { question: 'Which?', options: ['a', 'b'] },
    })
    const path = `/v1/runs/${asked.body.id}/input`
    const request_id = asked.body.input_request.id
    const wrong = await call('POST', path, { request_id, answer: 'z' })
    expect([wrong.status, wrong.body.code]).toEqual([422, 'invalid_request'])
    expect(wrong.body.errors[0].pointer).toMatch(/^\/answer/)
    const right = await call('POST', path, { request_id, answer: 'b' })
    expect(right.status).toBe(202)
    const again = await call('POST', path, { request_id, answer: 'a' })
    expect([again.status, again.body.code]).toEqual([409, 'input_answered'])
    const events = await allEvents(
      await server.follow(`/v1/runs/${asked.body.id}/events`, { token: adminToken }),
    )
    expect(events.at(-1)?.data).toMatchObject({
      status: 'completed',
      answer: 'You chose b.',
      input_request: null,
      consent_request: null,
    })
  })
})

describe('reading a run', () => {
  test('shows its state as the schema says, with large results inline or as references', async () => {
    const lines = Array.from({ length: 1500 }, (_, index) => `line ${index} ${'x'.repeat(30)}`).join('\n')
    planner(
      { tool_calls: [{ name: 'read_file', arguments: '{"file_path":"big.txt"}' }] },
      { text: 'Read it.' },
    )
    const files = [
      { name: 'big.txt', type: 'text/plain', content_base64: Buffer.from(lines).toString('base64') },
    ]
    const run = (await call('POST', '/v1/runs/wait', body({ files }))).body
    const whole = runtimeStateSchema.parse((await call('GET', `/v1/runs/${run.id}/state`)).body)
    checkInvariants(whole)
    const read = whole.action_history[0]?.find((action) => action.node === 'read_file')
    expect(String(read?.result.text)).toContain('line 900')
    // of the 66 KB the planner sees what its prompt has space for, and how to go on
    const shown = model
      .requests('planner')
      .at(-1)
      ?.messages.findLast(({ role }) => role === 'tool')?.content
    expect(String(shown)).toContain('line 800')
    expect(String(shown)).toMatch(/\[cut: .* read_result with action_id \d+ and from 3\d{4} reads the rest\]/)
    const bare = runtimeStateSchema.parse((await call('GET', `/v1/runs/${run.id}/state?inline=false`)).body)
    const reference = bare.action_history[0]?.find((action) => action.node === 'read_file')?.result as Record<
      string,
      string
    >
    expect(Object.keys(reference).sort()).toEqual(expect.arrayContaining(['blob', 'bytes', 'head']))
    const blob = await call('GET', `/v1/runs/${run.id}/blobs/${reference.blob}`)
    expect(blob.text.length).toBeGreaterThan(32 * 1024)
    expect((await call('GET', `/v1/runs/${run.id}/blobs/${'0'.repeat(64)}`)).status).toBe(404)
    // what a caller writes into a run of its own shows no blob of another
    const [hash] = [String(reference.blob)]
    const metadata = { blob: hash, local_path: `blob:${hash}`, files: [{ local_path: `blob:${hash}` }] }
    const other = await call('POST', '/v1/runs', {
      json: { prompt: `"local_path":"blob:${hash}"`, user_id: 'other', metadata },
    })
    expect((await call('GET', `/v1/runs/${other.body.id}/blobs/${hash}`)).status).toBe(404)
    expect(bare.origin_files).toMatchObject([{ name: 'big.txt', type: 'text/plain', mapping: null }])
  })

  test('lists runs by user, session and status, newest first, page by page', async () => {
    const user_id = unique('lister')
    const session_id = unique('s')
    planner({ text: 'Hello.' })
    const ids: string[] = []
    for (const prompt of ['1', '2', '3'])
      ids.push((await call('POST', '/v1/runs/wait', body({ prompt, user_id, session_id }))).body.id)
    const first = await call('GET', `/v1/runs?user_id=${user_id}&status=completed&limit=2`)
    expect(first.body.data.map((run: { id: string }) => run.id)).toEqual([ids[2], ids[1]])
    const second = await call(
      'GET',
      `/v1/runs?session_id=${session_id}&limit=2&cursor=${first.body.next_cursor}`,
    )
    expect(second.body).toMatchObject({ data: [{ id: ids[0] }], next_cursor: null })
    expect((await call('GET', '/v1/runs?cursor=nonsense')).status).toBe(422)
    const session = sessionViewSchema.parse((await call('GET', `/v1/sessions/${session_id}`)).body)
    expect(session.turns.map(({ turn, prompt, answer }) => [turn, prompt, answer])).toEqual([
      [1, '1', 'Hello.'],
      [2, '2', 'Hello.'],
      [3, '3', 'Hello.'],
    ])
    expect((await call('GET', `/v1/sessions?user_id=${user_id}`)).body.data).toHaveLength(1)
  })
})

describe('events', () => {
  test('resume after any id with exactly the rest, the header beating the query', async () => {
    planner({ tool_calls: [{ name: 'calculate', arguments: '{"expression":"1+1"}' }] }, { text: 'Two.' })
    const run = (await call('POST', '/v1/runs/wait', body())).body
    const path = `/v1/runs/${run.id}/events`
    for (let after = 0; after <= 8; after++) {
      const headers = { 'last-event-id': String(after) }
      const events = await allEvents(
        await server.follow(`${path}?after=1`, { token: adminToken, headers: after ? headers : {} }),
      )
      const ids = events.filter(({ event }) => event === 'action').map(({ id }) => id)
      expect(ids).toEqual(Array.from({ length: 8 - (after || 1) }, (_, index) => (after || 1) + index + 1))
      expect(events[0]?.event).toBe('status')
      expect(events.at(-1)?.event).toBe('done')
    }
  })

  test('of a session go on over its runs', async () => {
    const session_id = unique('s')
    planner({ text: 'Hello.' })
    await call('POST', '/v1/runs/wait', body({ session_id }))
    const followed = await server.follow(`/v1/sessions/${session_id}/events`, { token: adminToken })
    const second = await call('POST', '/v1/runs', body({ session_id, prompt: 'again' }))
    const ids: number[] = []
    for await (const { event, data } of followed.events) {
      if (event !== 'action') continue
      const action = actionEventSchema.parse(data)
      ids.push(action.id)
      if (action.node === 'end' && action.run_id === second.body.id) break
    }
    followed.leave()
    expect(ids).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })
})

describe('cancel', () => {
  test('aborts a model call that is under way, and can be repeated', async () => {
    planner({ hold: true, text: 'never' })
    const { body: accepted } = await call('POST', '/v1/runs', body())
    await model.received(1, 'planner')
    expect((await call('POST', `/v1/runs/${accepted.id}/cancel`, { reason: 'changed my mind' })).status).toBe(
      202,
    )
    expect((await call('POST', `/v1/runs/${accepted.id}/cancel`)).status).toBe(202)
    const followed = server.follow(`/v1/runs/${accepted.id}/events`, { token: adminToken })
    const events = await followed.then(allEvents)
    expect(events.at(-1)?.data).toMatchObject({ status: 'cancelled', answer: null })
    const end = events.findLast(({ event }) => event === 'action')
    expect(end?.data).toMatchObject({
      node: 'end',
      result: { status: 'cancelled', reason: 'changed my mind' },
    })
    await until('the model call to be gone', () => model.open() === 0)
  })

  test('is refused for a run that has completed', async () => {
    planner({ text: 'Hello.' })
    const run = (await call('POST', '/v1/runs/wait', body())).body
    const refused = await call('POST', `/v1/runs/${run.id}/cancel`)
    expect([refused.status, refused.body.code]).toEqual([409, 'run_ended'])
  })
})

describe('sessions', () => {
  test('can be forked at an action and deleted', async () => {
    const session_id = unique('s')
    planner({ text: 'Hello.' })
    await call('POST', '/v1/runs/wait', body({ session_id }))
    await call('POST', '/v1/runs/wait', body({ session_id, prompt: 'second' }))
    const fork = await call('POST', `/v1/sessions/${session_id}/fork`, { action_id: 5 })
    expect(fork.status).toBe(201)
    expect(fork.body.turns.map((turn: { prompt: string }) => turn.prompt)).toEqual(['Say hello'])
    planner({ text: 'On the fork.' })
    const onward = await call(
      'POST',
      '/v1/runs/wait',
      body({ session_id: fork.body.id, prompt: 'another way' }),
    )
    expect(onward.body).toMatchObject({ turn: 2, answer: 'On the fork.' })
    checkInvariants((await call('GET', `/v1/runs/${onward.body.id}/state`)).body)
    expect((await call('DELETE', `/v1/sessions/${session_id}`)).status).toBe(204)
    expect((await call('GET', `/v1/sessions/${session_id}`)).status).toBe(404)
    expect((await call('GET', `/v1/sessions/${fork.body.id}`)).status).toBe(200)
  })
})

describe('tokens and businesses', () => {
  test('a token sees its own business only, and what its roles allow', async () => {
    const [ours, theirs] = [unique('acme'), unique('globex')]
    const [submitter, reader, foreign] = await Promise.all([
      makeToken(ours, ['submit', 'read']),
      makeToken(ours, ['read']),
      makeToken(theirs, ['submit', 'read']),
    ])
    planner({ text: 'Hello.' })
    const run = (await server.call('POST', '/v1/runs/wait', { token: submitter, json: body() })).body
    expect(run.status).toBe('completed')
    const asked = async (token: string, path: string) => (await server.call('GET', path, { token })).status
    expect(await asked(reader, `/v1/runs/${run.id}`)).toBe(200)
    for (const path of ['', '/state', '/events'])
      expect(await asked(foreign, `/v1/runs/${run.id}${path}`)).toBe(404)
    expect(await asked(foreign, `/v1/sessions/${run.session_id}`)).toBe(404)
    expect((await server.call('GET', '/v1/runs', { token: foreign })).body.data).toEqual([])
    const refused = await server.call('POST', '/v1/runs', { token: reader, json: body() })
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    const borrowed = await server.call('POST', '/v1/runs', {
      token: foreign,
      json: body({ business_id: ours }),
    })
    expect(borrowed.status).toBe(403)
    expect((await server.call('GET', '/admin/v1/tokens', { token: submitter })).status).toBe(403)
    expect((await server.call('GET', '/v1/runs', {})).status).toBe(401)
  })

  test('a revoked token is refused at once, and no list ever shows a token', async () => {
    const made = await call('POST', '/admin/v1/tokens', { business_id: unique('acme'), label: 'short' })
    const { token, id } = made.body
    expect((await server.call('GET', '/v1/runs', { token })).status).toBe(200)
    expect((await call('GET', '/admin/v1/tokens')).text).not.toContain(token)
    expect((await call('PATCH', `/admin/v1/tokens/${id}`, { label: 'renamed' })).body).toMatchObject({
      label: 'renamed',
    })
    expect((await call('DELETE', `/admin/v1/tokens/${id}`)).status).toBe(204)
    expect((await server.call('GET', '/v1/runs', { token })).status).toBe(401)
    expect((await call('GET', `/admin/v1/tokens/${id}`)).status).toBe(404)
  })

  test('a wait ends without the run where its token was revoked meanwhile', async () => {
    planner({ hold: true, text: 'secret' })
    const made = await call('POST', '/admin/v1/tokens', { business_id: unique('acme'), label: 'short' })
    const { token, id } = made.body
    const waiting = server.call('POST', '/v1/runs/wait', { token, json: body() })
    await model.received(1, 'planner', deadline())
    expect((await call('DELETE', `/admin/v1/tokens/${id}`)).status).toBe(204)
    model.release()
    const { status, text } = await waiting
    expect([status, text]).toEqual([401, expect.not.stringContaining('secret')])
  })

  test("a profile of the users table becomes the user_context of the user's runs", async () => {
    const user_id = unique('ann')
    expect(
      (await call('POST', '/admin/v1/users', { user_id, profile: { name: 'Ann', language: 'fr' } })).status,
    ).toBe(201)
    expect((await call('POST', '/admin/v1/users', { user_id, profile: {} })).body.code).toBe('already_exists')
    const elsewhere = await call('POST', '/admin/v1/users', {
      user_id,
      business_id: 'elsewhere',
      profile: {},
    })
    const found = await call('GET', String(elsewhere.headers.get('location')))
    expect(found.body).toEqual(elsewhere.body)
    planner({ text: 'Bonjour.' })
    const run = (await call('POST', '/v1/runs/wait', body({ user_id }))).body
    expect((await call('GET', `/v1/runs/${run.id}/state`)).body.user_context).toEqual({
      name: 'Ann',
      language: 'fr',
    })
    expect(
      (await call('PATCH', `/admin/v1/users/${user_id}`, { profile: { name: 'Anne' } })).body.profile,
    ).toEqual({ name: 'Anne' })
    expect((await call('DELETE', `/admin/v1/users/${user_id}`)).status).toBe(204)
    expect((await call('GET', `/admin/v1/users/${user_id}`)).status).toBe(404)
  })
})

describe('text of every kind', () => {
  test('NUL bytes and lone surrogates in prompt, metadata and answers neither break the run nor what lists show', async () => {
    const odd = 'a\u0000b\ud800c'
    planner({ text: `It was ${odd}` })
    const run = await call('POST', '/v1/runs/wait', body({ prompt: odd, metadata: { odd } }))
    expect(run.status).toBe(200)
    expect(run.body.metadata.odd).toBe(odd)
    expect((await call('GET', `/v1/runs/${run.body.id}/state`)).body.prompts).toEqual([odd])
    expect((await call('GET', '/v1/runs')).status).toBe(200)
    expect((await call('GET', `/v1/sessions/${run.body.session_id}`)).body.turns[0].prompt).toBe(odd)
    const events = await allEvents(
      await server.follow(`/v1/runs/${run.body.id}/events`, { token: adminToken }),
    )
    expect(events.at(-1)?.event).toBe('done')
  })
})

describe('operations', () => {
  test('health, readiness, metrics and the description of the API need no token', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs/'])
      expect((await server.call('GET', path)).status).toBe(200)
    expect((await server.call('GET', '/metrics')).text).toMatch(/mason_workers 1/)
    expect((await server.call('GET', '/readyz')).body).toMatchObject({ ok: true })
  })
})
