// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { freePort } from '../../../examples/free-port.ts'
import { claimNextRun } from '../../../src/engine/runs/claim.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { OutageRecord } from '../../../src/state/outage.ts'
import type { RunView } from '../../../src/state/run-view.ts'
import { openBackend } from '../../support/backend.ts'
import { type FakeReply, startFakeModel } from '../../support/fake-model/fake-model.ts'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'
import { readMetric } from '../../support/metrics.ts'
import { count, endLease, openWithDatabase, rowOf, until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { deadline, eventsOf, fakeModels, nodesOf, type TestRuntime } from '../../support/test-runtime.ts'

const down: FakeReply = { failure: { status: 503 } }
const up: FakeReply = { text: 'Here I am.' }
const limited = (seconds: number): FakeReply => ({
  failure: { status: 429, headers: { 'retry-after': String(seconds) } },
})

const submit = async (runtime: TestRuntime, more: object = {}): Promise<string> =>
  (await runtime.of('default').submit({ prompt: 'hello', user_id: 'u1', ...more })).run.id

const view = async (runtime: TestRuntime, id: string): Promise<RunView> => {
  const run = await runtime.of('default').run(id)
  if (!run) throw new Error(`there is no run ${id}`)
  return run
}

/** Resolves once the run waits for a model. */
const waiting = (runtime: TestRuntime, id: string) =>
  until('the run to wait for a model', async () => {
    const run = await view(runtime, id)
    return run.status === 'queued' && run.retry_at !== null && run
  })

/** Makes the next try due now, as if its time had come. */
const makeDue = async (database: Database, id: string): Promise<void> => {
  await database.query(`UPDATE runs SET run_at = clock_timestamp() WHERE run_id = $1`, [id])
  await database.query(`UPDATE outbox SET ring_at = clock_timestamp() WHERE run_id = $1`, [id])
}

const end = (runtime: TestRuntime, id: string): Promise<RunView> => runtime.of('default').wait(id, deadline())

describe('a run whose vendor is down', () => {
  test('waits in the queue without a lease, says until when and why, and goes on when the vendor is back', async ({
    model,
    runtime,
  }) => {
    say(model, { planner: [down] })
    const id = await submit(runtime)
    const run = await waiting(runtime, id)
    expect(run).toMatchObject({
      retry_at: expect.stringMatching(/^\d{4}-.*Z$/),
      retry_reason: { code: 'model_unavailable', message: expect.stringContaining('503') },
      error: null,
    })
    const listed = await until('the run to be listed', async () => {
      const { data } = await runtime.of('default').runs({ status: 'queued', limit: 50 })
      return data.find((one) => one.id === id && one.retry_at !== null)
    })
    expect(listed.retry_reason?.code).toMatch(/^(model_unavailable|no_model_available)$/)
    say(model, { planner: [up] })
    expect(await end(runtime, id)).toMatchObject({
      ...{ status: 'completed', answer: 'Here I am.', retry_at: null, retry_reason: null, error: null },
    })
    expect(nodesOf(await runtime.stateOf(id))).toEqual([
      'load-session',
      'user-context',
      'planner',
      'answer',
      'end',
    ])
    const statuses = (await eventsOf(runtime.of('default'), id)).filter(({ event }) => event === 'status')
    expect(statuses.at(-1)?.data).toMatchObject({ status: 'completed' })
    const lefts = runtime.held.filter(({ run: { claimed } }) => claimed.run_id === id).map(({ left }) => left)
    expect(lefts).toContain('no_model')
    expect(await readMetric(runtime, 'mason_model_outage_requeues_total')).toBeGreaterThan(0)
  })

  test('shows its followers until when and why it waits', async ({ model, runtime }) => {
    say(model, { planner: [down] })
    const id = await submit(runtime)
    const events = runtime.of('default').events({ run_id: id }, 0, deadline())
    for await (const event of events) {
      if (event.event !== 'status' || !event.data.retry_at) continue
      expect(event.data).toMatchObject({ status: 'queued', retry_reason: { code: 'model_unavailable' } })
      break
    }
    await waiting(runtime, id)
    await runtime.of('default').cancel(id, undefined)
  })

  test('goes on when the vendor takes connections again, after a restart of all workers too', async () => {
    const port = await freePort()
    const gone = await startFakeModel({ port })
    const { baseUrl } = gone
    await gone.close()
    const backend = await openBackend()
    const open = () => openWithDatabase(backend, { models: fakeModels(baseUrl) })
    let own = await open()
    try {
      const id = await submit(own.runtime)
      const { retry_reason } = await waiting(own.runtime, id)
      expect(retry_reason?.message).toContain('cannot be reached')
      await own.database.query(`UPDATE runs SET run_at = run_at + interval '1 hour' WHERE run_id = $1`, [id])
      if (backend.kind === 'served') {
        const { run_at } = await rowOf(own.database, id)
        await own.runtime.close()
        own = await open()
        expect(await view(own.runtime, id)).toMatchObject({
          status: 'queued',
          retry_at: run_at.toISOString(),
        })
      }
      await using _back = await startFakeModel({ port, script: { planner: [up] } })
      await makeDue(own.database, id)
      expect(await end(own.runtime, id)).toMatchObject({ status: 'completed', answer: 'Here I am.' })
    } finally {
      await own.runtime.close()
      await backend.drop()
    }
  })

  test('is not tried again before the time that the vendor names', async ({ model, runtime }) => {
    say(model, { planner: [limited(2), up] })
    const asked = model.requests('planner').length
    const id = await submit(runtime)
    const { created_at, retry_at, retry_reason } = await waiting(runtime, id)
    expect(retry_reason?.code).toBe('model_rate_limited')
    expect(Date.parse(retry_at ?? '') - Date.parse(created_at)).toBeGreaterThan(1900)
    expect((await end(runtime, id)).status).toBe('completed')
    const [refused, answered] = model.requests('planner').slice(asked)
    expect(Number(answered?.atMs) - Number(refused?.atMs)).toBeGreaterThan(1900)
  })

  test('is cancelled at once while it waits', async ({ model, runtime }) => {
    say(model, { planner: [down] })
    const id = await submit(runtime)
    await waiting(runtime, id)
    expect(await runtime.of('default').cancel(id, 'enough')).toMatchObject({
      ...{ status: 'cancelled', retry_at: null, retry_reason: null },
    })
    expect(nodesOf(await runtime.stateOf(id)).at(-1)).toBe('end')
  })

  test('fails when its time is up, with the times and errors of its tries', async ({
    model,
    runtime,
    database,
  }) => {
    say(model, { planner: [down] })
    const id = await submit(runtime, { limits: { timeout_ms: 600_000 } })
    await until('a second try', async () => {
      await makeDue(database, id)
      return (await count(database, 'run_outages WHERE run_id = $1 AND tries > 1', [id])) > 0
    })
    await until('its time to be up', async () => {
      await database.query(`UPDATE runs SET worked_ms = 600000 WHERE run_id = $1 AND status = 'queued'`, [id])
      await makeDue(database, id)
      return (await view(runtime, id)).status === 'failed'
    })
    const run = await end(runtime, id)
    expect(run).toMatchObject({
      status: 'failed',
      finish_reason: null,
      error: { code: 'model_unavailable', node: 'planner', message: expect.stringContaining('503') },
    })
    const detail: unknown = run.error?.detail
    const { first } = detail as OutageRecord
    expect(first.length).toBeGreaterThan(1)
    for (const one of first) expect(one).toMatchObject({ code: 'model_unavailable', node: 'planner' })
    expect(first.every(({ at }, n) => n === 0 || at > String(first[n - 1]?.at))).toBe(true)
    expect(nodesOf(await runtime.stateOf(id))).toEqual(
      ['load-session', 'user-context', 'planner', 'end'].toSpliced(2, 1),
    )
  })

  test('is not poison however often it is claimed, and a worker that dies in between is taken over', async ({
    model,
    runtime,
    database,
  }) => {
    say(model, { planner: [down] })
    const id = await submit(runtime)
    for (let claims = 1; claims <= 7; claims++) {
      const row = await until('the run to be queued again', async () => {
        const now = await rowOf(database, id)
        return now.status === 'queued' && now.epoch >= claims && now
      })
      expect(row).toMatchObject({ stalls: 0, lease_owner: null, lease_until: null })
      await makeDue(database, id)
    }
    await until(
      'a claim by a worker that dies',
      async () =>
        (await claimNextRun(database, 'dies', 30_000))?.run_id === id || (await makeDue(database, id)),
    )
    say(model, { planner: [up] })
    await endLease(database, id)
    expect(await end(runtime, id)).toMatchObject({ status: 'completed', answer: 'Here I am.' })
  })

  test('holds the later runs of its session behind it, and no other session', async ({ model, runtime }) => {
    model.script(({ messages }) => (JSON.stringify(messages).includes('stuck') && isDown ? down : up))
    let isDown = true
    const session_id = 'in-order'
    const first = await submit(runtime, { prompt: 'stuck', session_id })
    await waiting(runtime, first)
    const second = await submit(runtime, { session_id })
    const other = await submit(runtime, { session_id: 'another' })
    expect((await end(runtime, other)).status).toBe('completed')
    expect(await view(runtime, second)).toMatchObject({ status: 'queued', started_at: null, retry_at: null })
    isDown = false
    expect((await end(runtime, second)).status).toBe('completed')
    const [a, b] = [await view(runtime, first), await view(runtime, second)]
    expect(a.status).toBe('completed')
    expect(String(a.ended_at) <= String(b.started_at)).toBe(true)
  })
})

describe('an outage while the answer is written', () => {
  test('repeats the output call alone', async ({ model, runtime }) => {
    say(model, { planner: [up], output: [down] })
    const asked = model.requests('planner').length
    const id = await submit(runtime, { output: { style: 'short' } })
    await waiting(runtime, id)
    say(model, { output: [{ text: '{"answer":"Here."}' }] })
    expect(await end(runtime, id)).toMatchObject({ status: 'completed', answer: 'Here.' })
    expect(model.requests('planner').length - asked).toBe(1)
  })
})

describe('roles that rules can take', () => {
  test('do not wait for a model: understand and reflection go on by rules', async ({ model, runtime }) => {
    const calls = calling(['calculate', { expression: '1/0' }])
    say(model, { understand: [down], planner: [calls, up], reflection: [down] })
    const run = await runtime.complete({ prompt: 'Divide one by zero, please. '.repeat(20) })
    expect(run).toMatchObject({ status: 'completed', answer: 'Here I am.' })
    const actions = (await runtime.stateOf(run.id)).action_history[0] ?? []
    for (const node of ['understand', 'reflection'])
      expect(actions.find((action) => action.node === node)?.result.by).toBe('rules')
    const lefts = runtime.held.filter((one) => one.run.claimed.run_id === run.id).map(({ left }) => left)
    expect(lefts).not.toContain('no_model')
  })
})

describe('what waiting cannot fix', () => {
  test.for<[string, number, string]>([
    ['a refused key', 401, 'model_unauthorized'],
    ['an unknown model', 404, 'model_bad_request'],
  ])('fails at once: %s', async ([_, status, code], { model, runtime, database }) => {
    say(model, { planner: [{ failure: { status } }] })
    const run = await runtime.complete({ prompt: 'hello' })
    expect(run).toMatchObject({ status: 'failed', error: { code, node: 'planner' } })
    expect(await count(database, 'run_outages WHERE run_id = $1', [run.id])).toBe(0)
  })
})

describe('POST /v1/runs/wait', () => {
  test('answers 202 with the run when wait_ms is over, and the run goes on', async ({
    model,
    server,
    runtime,
  }) => {
    say(model, { planner: [down] })
    const json = { prompt: 'hello', user_id: 'u1', wait_ms: 300 }
    const reply = await server.call('POST', '/v1/runs/wait', { token: adminToken, json })
    expect(reply).toMatchObject({ status: 202, body: { id: expect.any(String), answer: null } })
    expect(['queued', 'running']).toContain(reply.body.status)
    expect(reply.headers.get('location')).toBe(`/v1/runs/${reply.body.id}`)
    say(model, { planner: [up] })
    expect((await end(runtime, reply.body.id)).status).toBe('completed')
  })

  test.for([-1, 60_001, 1.5, '5'])('refuses wait_ms %s, and names the field', async (wait_ms, { server }) => {
    const json = { prompt: 'hello', user_id: 'u1', wait_ms }
    const reply = await server.call('POST', '/v1/runs/wait', { token: adminToken, json })
    expect(reply).toMatchObject({ status: 422, body: { errors: [{ pointer: '/wait_ms' }] } })
  })
})
