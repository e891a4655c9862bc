// backends: either
// asserts: invariants

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect } from 'vitest'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { count } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { deadline, type TestRuntime } from '../../support/test-runtime.ts'

const startShop = async () => {
  const shop = { orders: 0, url: '', close: () => {} }
  const server = createServer((_, response) => {
    shop.orders += 1
    response.writeHead(201).end('ordered')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  shop.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  shop.close = () => void server.close()
  return shop
}
const test = runtimeTest.extend('shop', { scope: 'file' }, closing(startShop))

const business = unique('acme')
let model: FakeModel
let runtime: TestRuntime
let server: TestServer
let database: Database
let shop: Awaited<ReturnType<typeof startShop>>

test.beforeAll(async ({ model: m, runtime: r, server: s, database: d, shop: p }) => {
  ;[model, runtime, server, database, shop] = [m, r, s, d, p]
  const http_hosts = [{ host: new URL(shop.url).host, allow_private: true }]
  const json = { id: business, http_hosts }
  expect((await server.call('POST', '/admin/v1/businesses', { token: adminToken, json })).status).toBe(201)
})

const rerun = (
  id: string,
  json: object = {},
  { key, token = adminToken }: { key?: string; token?: string } = {},
) =>
  server.call('POST', `/v1/runs/${id}/rerun${token === adminToken ? `?business_id=${business}` : ''}`, {
    token,
    json,
    ...(key && { headers: { 'idempotency-key': key } }),
  })
const api = () => runtime.of(business)
const complete = async (planner: object[], request: object = {}) => {
  say(model, { planner } as never)
  const { run } = await api().submit({ prompt: 'one and one', user_id: 'u1', ...request })
  return api().wait(run, deadline())
}
const end = (body: { id: string; session_id: string }) => api().wait(body, deadline())
const calculate = calling(['calculate', { expression: '1+1' }])
const nodesOf = async (id: string): Promise<string[]> =>
  (await runtime.stateOf(id, business)).action_history.at(-1)?.map(({ node }) => node) ?? []

describe('a run that is run again', () => {
  test('is the next turn of a fork right before it, with another prompt and other models', async () => {
    const first = await complete([{ text: 'Hello.' }])
    const second = await complete([calculate, { text: 'Two.' }], {
      session_id: first.session_id,
      metadata: { order: 7 },
    })
    say(model, { planner: [{ text: 'Three.' }] })
    const { status, body, headers } = await rerun(second.id, { prompt: 'one and two' })
    expect([status, headers.get('location')]).toEqual([202, `/v1/runs/${body.id}`])
    expect(body.session_id).not.toBe(first.session_id)
    expect(await end(body)).toMatchObject({
      ...{ turn: 2, status: 'completed', answer: 'Three.', prompt: 'one and two' },
      ...{ retry_of: second.id, metadata: { order: 7 }, user_id: 'u1' },
    })
    const forked = await api().session(body.session_id)
    expect(forked?.turns.map(({ answer }) => answer)).toEqual(['Hello.', 'Three.'])
    expect(JSON.stringify(model.requests('planner').at(-1)?.messages)).toContain('Hello.')
    checkInvariants(await runtime.stateOf(body.id, business))
    // the run stays as it was
    expect(await api().run(second.id)).toEqual(second)
    expect((await api().session(first.session_id))?.turns).toHaveLength(2)

    say(model, { planner: [{ text: 'Hi.' }] })
    const again = await rerun(first.id)
    expect(await end(again.body)).toMatchObject({ turn: 1, prompt: 'one and one', answer: 'Hi.' })
  })

  test('goes on from any of its actions', async () => {
    const first = await complete([calculate, { text: 'Two.' }])
    const nodes = await nodesOf(first.id)
    for (const from_action of [1, 3, nodes.indexOf('calculate') + 1, nodes.length - 1]) {
      const isPlanned = from_action > nodes.indexOf('planner')
      say(model, { planner: [...(isPlanned ? [] : [calculate]), { text: 'Zwei.' }] })
      const { status, body, text } = await rerun(first.id, { from_action })
      expect([status, text]).toEqual([202, text])
      const ended = await end(body)
      expect([from_action, ended.status, ended.turn]).toEqual([from_action, 'completed', 1])
      const state = await runtime.stateOf(body.id, business)
      checkInvariants(state)
      const before = (await runtime.stateOf(first.id, business)).action_history[0]?.slice(0, from_action)
      expect(state.action_history[0]?.slice(0, from_action)).toEqual(before)
      expect(await nodesOf(body.id)).toEqual(nodes)
      expect(ended.usage).toEqual(state.usage[0])
    }
    for (const from_action of [nodes.length, 99])
      expect(await rerun(first.id, { from_action })).toMatchObject({
        status: 422,
        body: { errors: [{ pointer: '/from_action' }] },
      })
    expect(await rerun(first.id, { from_action: 1, prompt: 'x' })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/prompt' }] },
    })
  })

  test('is one run for one key, and refused while it is open, for models that are not there, and for others', async () => {
    const first = await complete([{ text: 'Two.' }])
    say(model, { planner: [{ text: 'Zwei.' }] })
    const sessions = () => count(database, `sessions WHERE tenant = '${business}'`)
    const made = await rerun(first.id, {}, { key: 'once' })
    const before = await sessions()
    expect(await rerun(first.id, {}, { key: 'once' })).toMatchObject({ status: 200, body: made.body })
    expect(await rerun(first.id, { learn: true }, { key: 'once' })).toMatchObject({
      status: 422,
      body: { code: 'idempotency_conflict' },
    })
    const raced = await Promise.all(['race', 'race'].map((key) => rerun(first.id, {}, { key })))
    expect(new Set(raced.map(({ body }) => body.id)).size).toBe(1)
    expect(raced.map(({ status }) => status).sort()).toEqual([200, 202])
    expect(await sessions()).toBe(before + 1)
    expect(await rerun(first.id, { models: { planner: 'none' } })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/models/planner' }] },
    })
    await Promise.all([end(made.body), end(raced[0]?.body)])
    const later = await api().submit({ prompt: 'x', user_id: 'u1', delay_ms: 60_000 })
    expect(await rerun(later.run.id)).toMatchObject({ status: 409, body: { code: 'in_use' } })
    expect((await rerun('none')).status).toBe(404)
    const newToken = async (business_id: string, role: 'read' | 'submit') =>
      (await runtime.admin.tokens.create({}, { business_id, label: 't', roles: [role] })).token
    expect((await rerun(first.id, {}, { token: await newToken(business, 'read') })).status).toBe(403)
    expect((await rerun(first.id, {}, { token: await newToken(unique('b'), 'submit') })).status).toBe(404)
  })

  test('repeats side effects only where it says so, and those of copied actions never', async () => {
    const order = calling(['http_request', { method: 'POST', url: `${shop.url}/orders`, body: 'x' }])
    const first = await complete([order, { text: 'Ordered.' }])
    expect(shop.orders).toBe(1)
    const at = (await nodesOf(first.id)).indexOf('http_request') + 1
    const refused = await rerun(first.id)
    expect(refused).toMatchObject({
      status: 409,
      body: {
        code: 'has_effects',
        effects: [{ action: at, node: 'http_request', kind: 'manual', status: 'succeeded' }],
      },
    })
    expect((await rerun(first.id, { from_action: at - 1 })).status).toBe(409)
    say(model, { planner: [{ text: 'Done.' }] })
    const after = await rerun(first.id, { from_action: at })
    expect([(await end(after.body)).answer, shop.orders]).toEqual(['Done.', 1])
    // the copy of an action stands for what it did
    expect((await rerun(after.body.id)).body.effects).toMatchObject([{ action: at }])
    const fork = await api().fork(first.session_id, at)
    expect((await rerun(fork?.turns[0]?.run_id ?? '')).body.code).toBe('has_effects')
    say(model, { planner: [order, { text: 'Again.' }] })
    const again = await rerun(first.id, { repeat_effects: true })
    expect([(await end(again.body)).answer, shop.orders]).toEqual(['Again.', 2])
  })

  test('never repeats a payment', async () => {
    const first = await complete([calculate, { text: 'Paid.' }])
    const nodes = await nodesOf(first.id)
    const [plan, at] = [nodes.indexOf('planner') + 1, nodes.indexOf('calculate') + 1]
    await database.query(
      `INSERT INTO waits (tenant, run_id, plan_seq, call_index, part, kind, ref_id, done_at, outcome, seen_at)
       VALUES ($1, $2, $3, 0, 0, 'payment', $4, now(), '{}', now())`,
      [business, first.id, plan, unique('pay')],
    )
    for (const from of [{}, { from_action: at - 1 }])
      expect(await rerun(first.id, { ...from, repeat_effects: true })).toMatchObject({
        status: 409,
        body: { code: 'has_payments' },
      })
    say(model, { planner: [{ text: 'Done.' }] })
    const after = await rerun(first.id, { from_action: at })
    expect((await end(after.body)).answer).toBe('Done.')
    expect((await rerun(after.body.id)).body.code).toBe('has_payments')
  })

  test('teaches nothing unless it says so', async () => {
    const first = await complete([{ text: 'Hello.' }], { prompt: 'My name is Ann.' })
    const isTaught = async (id: string) =>
      (
        await queryOne<{ failed_at: Date | null }>(
          database,
          'SELECT failed_at FROM distillations WHERE run_id = $1',
          [id],
        )
      )?.failed_at === null
    const made = []
    for (const learn of [false, true]) {
      say(model, { planner: [{ text: 'Hello.' }] })
      const { body } = await rerun(first.id, { learn })
      made.push(body.id)
      if (!learn) {
        await end(body)
        const row = await queryOne(database, 'SELECT error FROM distillations WHERE run_id = $1', [body.id])
        expect(row).toEqual({ error: 'given up: nothing is learned from what is run again' })
      } else expect(await count(database, `distillations WHERE run_id = '${body.id}'`)).toBe(0)
      await end(body)
    }
    expect(await isTaught(made[0] ?? '')).toBe(false)
  })
})
