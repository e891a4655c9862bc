// backends: either

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import type { RunView } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { calling } from '../../support/script.ts'
import { deadline, type TestRuntime, waitForOperator } from '../../support/test-runtime.ts'

/** What operators see and settle, over the API alone. */

/** A shop that takes an order and hangs up before it answers. */
const startShop = async () => {
  const shop = { orders: 0, url: '', close: () => {} }
  const server = createServer((request) => {
    shop.orders += 1
    request.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  shop.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  shop.close = () => void server.close()
  return shop
}
const toolFolders = [fileURLToPath(new URL('../../support/effect-tools', import.meta.url))]
const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { toolFolders })
  .extend('shop', { scope: 'file' }, closing(startShop))

const business = unique('acme')
let model: FakeModel
let runtime: TestRuntime
let server: TestServer
let shop: Awaited<ReturnType<typeof startShop>>

test.beforeAll(async ({ model: m, runtime: r, server: s, shop: p }) => {
  ;[model, runtime, server, shop] = [m, r, s, p]
  const http_hosts = [{ host: new URL(shop.url).host, allow_private: true }]
  const made = await call('POST', '/admin/v1/businesses', { id: business, http_hosts })
  expect([made.status, made.text]).toEqual([201, made.text])
})

const call = (method: string, path: string, json?: unknown, token: string = adminToken) =>
  server.call(method, path, { token, ...(json !== undefined && { json }) })

/** A run whose request was sent and never answered: its outcome is unknown. */
const order = async () => {
  model.reset()
  const request = { method: 'POST', url: `${shop.url}/orders`, body: 'x' }
  model.script({ planner: [calling(['http_request', request]), { text: 'Done.' }] } as never)
  const api = runtime.of(business)
  const { run } = await api.submit({ prompt: 'order one', user_id: unique('u') })
  await waitForOperator(runtime, run.id, business)
  const waiting = await api.run(run.id)
  expect(waiting).toMatchObject({ status: 'running', input_request: null })
  const { body } = await call('GET', '/admin/v1/effects?status=unknown')
  const effect = body.data.find(({ run_id }: { run_id: string }) => run_id === run.id)
  return {
    waiting: waiting as RunView,
    effect,
    resolve: (json: unknown) => call('POST', `/admin/v1/effects/${effect.id}/resolve`, json),
  }
}
const textOf = async (runId: string): Promise<unknown> => {
  const state = await runtime.stateOf(runId, business)
  return state.action_history.flat().find(({ node }) => node === 'http_request')?.result.text
}

describe('a side effect whose outcome is unknown', () => {
  test('is listed, settled once by an operator, and its run goes on with what the provider answered', async () => {
    const { waiting, effect, resolve } = await order()
    expect(effect).toMatchObject({ business_id: business, kind: 'manual', status: 'unknown', sends: 1 })
    expect(waiting.operator_request).toEqual({ effect_id: effect.id, error: effect.error })
    expect((await call('GET', '/admin/v1/overview')).body.now.unknown_effects).toBe(1)
    const response = JSON.stringify({
      ok: true,
      status: 201,
      content_type: null,
      location: null,
      note: null,
      text: 'order 5',
    })
    expect(await resolve({ took_place: true, response })).toMatchObject({
      status: 200,
      body: { status: 'succeeded' },
    })
    expect(await resolve({ took_place: false })).toMatchObject({ status: 409 })
    const ended = await runtime.of(business).wait(waiting.id, deadline())
    expect([ended.status, await textOf(waiting.id), shop.orders]).toEqual([
      'completed',
      expect.stringContaining('order 5'),
      1,
    ])
  })

  test('is sent again where it did not take place', async () => {
    const before = shop.orders
    const { waiting, effect, resolve } = await order()
    expect(await resolve({ took_place: false, response: 'x' })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/response' }] },
    })
    expect((await resolve({ took_place: false })).status).toBe(200)
    // the shop hangs up again: the operator is needed again, and says that it took place
    await expect.poll(() => shop.orders - before).toBe(2)
    await expect.poll(async () => (await resolve({ took_place: true })).status).toBe(200)
    const ended = await runtime.of(business).wait(waiting.id, deadline())
    expect([ended.status, shop.orders - before, effect.sends]).toEqual(['completed', 2, 1])
    expect(await textOf(waiting.id)).toContain('An operator confirmed')
  })

  test('is settled in the books alone where its run has ended', async () => {
    const { waiting, effect, resolve } = await order()
    await runtime.of(business).cancel(waiting.id, 'enough')
    expect(await resolve({ took_place: true })).toMatchObject({ status: 200, body: { status: 'succeeded' } })
    expect((await resolve({ took_place: true })).status).toBe(409)
    expect(
      (await call('POST', `/admin/v1/effects/${effect.run_id}/resolve`, { took_place: true })).status,
    ).toBe(404)
  })
})

describe('a tool whose provider refuses', () => {
  /** A run that charges a card, with the error of the provider in words. */
  const charge = async (args: { kind: string; refuses: boolean }, more: object = {}) => {
    model.reset()
    model.script({ planner: [calling(['charge_card', args]), { text: 'The card has expired.' }] } as never)
    const { run } = await runtime.of('default').submit({ prompt: 'charge', user_id: unique('u'), ...more })
    return run
  }
  const cardResult = async (id: string) =>
    (await runtime.stateOf(id)).action_history.flat().find(({ node }) => node === 'charge_card')?.result

  test.for(['keyed', 'queryable', 'manual'])(
    'and says so in an effect of class %s gives the model its reason, and no one is asked',
    async (kind) => {
      const { id } = await charge({ kind, refuses: true })
      const ended = await runtime.of('default').wait(id, deadline())
      expect(ended).toMatchObject({ status: 'completed', answer: 'The card has expired.' })
      expect(await cardResult(id)).toMatchObject({
        text: 'Error: card expired',
        is_error: true,
        code: 'effect_refused',
      })
      const { body } = await call('GET', '/admin/v1/effects?status=refused')
      expect(body.data.find(({ run_id }: { run_id: string }) => run_id === id)).toMatchObject({
        status: 'refused',
        error: 'card expired',
        sends: 1,
      })
    },
  )

  test('in words that no code reads waits for an operator with these words; the webhook says so, and no user is asked', async () => {
    const received: { type: string; data: Record<string, unknown> }[] = []
    const receiver = createServer(async (request, response) => {
      received.push(JSON.parse(await text(request)))
      response.end()
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const webhook_url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
    await call('PATCH', '/admin/v1/businesses/default/webhook', { allow_private: true })
    const { id } = await charge({ kind: 'manual', refuses: false }, { webhook_url })
    const request = await waitForOperator(runtime, id)
    expect(request.error).toBe('HTTP 400 card expired')
    expect(await runtime.of('default').run(id)).toMatchObject({ status: 'running', input_request: null })
    expect((await call('GET', `/v1/input-requests?run_id=${id}`)).body.data).toEqual([])
    await expect.poll(() => received).toHaveLength(1)
    expect(received[0]).toMatchObject({
      type: 'run.operator_required',
      data: { id, status: 'running', input_request: null, operator_request: request },
    })
    const settled = await call('POST', `/admin/v1/effects/${request.effect_id}/resolve`, {
      ...{ took_place: true, response: 'receipt 7' },
    })
    expect(settled).toMatchObject({ status: 200, body: { error: 'HTTP 400 card expired' } })
    expect((await runtime.of('default').wait(id, deadline())).status).toBe('completed')
    expect(await cardResult(id)).toMatchObject({ text: 'receipt 7' })
    receiver.close()
  })
})

describe('the questions of a business', () => {
  test('are listed with their run and user, by status', async () => {
    model.reset()
    model.script({
      planner: [
        calling(['ask_user', { question: 'Which colour?', options: ['red', 'blue'] }]),
        { text: 'Thanks.' },
      ],
    } as never)
    const asking = await runtime.complete({ prompt: 'Ask me', session_id: unique('s') })
    const list = async (query: string, token = adminToken) =>
      (await call('GET', `/v1/input-requests?${query}`, undefined, token)).body.data
    const open = await list(`status=open&run_id=${asking.id}`)
    expect(open).toEqual([
      {
        ...asking.input_request,
        ...{ run_id: asking.id, session_id: asking.session_id, user_id: 'u1', status: 'open' },
        ...{ created_at: expect.any(String), answered_at: null },
      },
    ])
    expect(await list(`status=answered&run_id=${asking.id}`)).toEqual([])
    expect(await list(`user_id=${unique('stranger')}`)).toEqual([])
    const { token } = await runtime.admin.tokens.create(
      {},
      {
        business_id: business,
        label: 't',
        roles: ['read'],
      },
    )
    expect(await list(`run_id=${asking.id}`, token)).toEqual([])
    expect((await call('GET', '/v1/input-requests?status=lost')).status).toBe(422)
    await runtime.of('default').answer(asking.id, open[0].id, 'red')
    await runtime.of('default').wait(asking.id, deadline())
    expect(await list(`run_id=${asking.id}`)).toMatchObject([
      { status: 'answered', answered_at: expect.any(String) },
    ])
  })

  test('are closed where their run ended without an answer', async () => {
    model.reset()
    model.script({ planner: [calling(['ask_user', { question: 'Why?' }])] } as never)
    const { id } = await runtime.complete({ prompt: 'Ask me', session_id: unique('s') })
    await runtime.of('default').cancel(id, undefined)
    const { body } = await call('GET', `/v1/input-requests?run_id=${id}`)
    expect(body.data).toMatchObject([{ status: 'closed' }])
  })
})

test('workers are listed, and the overview counts what was submitted and what waits', async () => {
  const { body: workers } = await call('GET', '/admin/v1/workers')
  expect(workers.data).toMatchObject([{ id: expect.stringMatching(/^worker_/), running: expect.any(Number) }])
  const { body: overview } = await call('GET', '/admin/v1/overview?hours=1')
  expect(overview.runs.submitted).toBeGreaterThan(3)
  expect(overview.before).toEqual({ submitted: 0, completed: 0, failed: 0, cancelled: 0 })
  expect((await call('GET', '/admin/v1/overview?hours=0')).status).toBe(422)
  const { token } = await runtime.admin.tokens.create(
    {},
    { business_id: business, label: 't', roles: ['admin'] },
  )
  for (const path of ['workers', 'overview', 'effects'])
    expect((await call('GET', `/admin/v1/${path}`, undefined, token)).status).toBe(403)
})

test('the graph says where each node and tool leads', async () => {
  const { status, body } = await call('GET', '/v1/graph')
  expect(status).toBe(200)
  expect(body).toMatchObject({
    version: runtime.graph.version,
    mermaid: expect.stringMatching(/^graph TD;/),
  })
  const names = body.nodes.map(({ name }: { name: string }) => name)
  expect([names[0], new Set(names).size]).toEqual(['load-session', names.length])
  for (const { name, next } of body.nodes) {
    expect(names, name).toEqual(expect.arrayContaining(next))
    if (name !== 'end') expect(next, name).not.toEqual([])
  }
})
