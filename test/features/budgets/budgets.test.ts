// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import type { Runtime } from '../../../src/app/api.ts'
import { createBudgetChecks } from '../../../src/features/budgets/budget-checks.ts'
import { budgetSchemas } from '../../../src/features/budgets/budget-schemas.ts'
import { createBudgets } from '../../../src/features/budgets/budgets.ts'
import { budgetsRef } from '../../../src/features/core.ref.ts'
import { intakeRef } from '../../../src/features/intake/intake.ref.ts'
import { fireSchedules } from '../../../src/features/schedules/schedule-firing.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import type { Reply, TestServer } from '../../support/http.ts'
import { deliver } from '../../support/intake.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { codeOf, nowOf, until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { addRoute, addVendor } from '../../support/vendors.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { models: null })

let fake: FakeModel
let server: TestServer
let runtime: Runtime
let database: Database
test.beforeAll(async ({ model, server: s, runtime: r, database: d }) => {
  ;[fake, server, runtime, database] = [model, s, r, d]
  // two hundredths a call: 10 tokens in, 5 out
  const prices = { input: 1000, output: 2000 }
  await addVendor(runtime, 'acme', model.baseUrl, { keys: ['k'], models: ['chatty'], model: { prices } })
  await addRoute(runtime, 'planner', ['chatty'])
})

const admin = (method: string, path: string, json?: object): Promise<Reply> =>
  server.call(method, `/admin/v1${path}`, { token: adminToken, ...(json && { json }) })
const create = async (path: string, json: object) => {
  const { status, body, text } = await admin('POST', path, json)
  expect([status, text]).toEqual([201, text])
  return body
}
const addToken = async (business_id: string): Promise<{ id: string; token: string }> => {
  const { id, token } = await create('/tokens', { business_id, label: 'l' })
  return { id, token }
}
const chat = (token: string, user?: string) =>
  server.call('POST', '/v1/chat/completions', {
    token,
    json: { model: 'chatty', messages: [{ role: 'user', content: 'Hi' }], ...(user && { user }) },
  })
const submit = (token: string, user_id = 'ann', json: object = {}) =>
  server.call('POST', '/v1/runs', { token, json: { prompt: 'p', user_id, delay_ms: 3_600_000, ...json } })
const spent = (id: string, cost: number) =>
  until(`${cost} spent of ${id}`, async () => {
    const { body } = await admin('GET', `/budgets/${id}`)
    return body.spent.this_month === cost && body
  })

describe('a budget on costs', () => {
  test('is set and read by admins, with what is spent and when it resets', async () => {
    const now = await nowOf(database)
    const business_id = unique('firm')
    const { token } = await addToken(business_id)
    // what was spent before counts
    expect((await chat(token)).status).toBe(200)
    const { id } = await create('/budgets', { business_id, daily_cost: 2.5 })
    const view = await spent(id, 0.02)
    const day = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)
    expect(view).toMatchObject({
      ...{ business_id, user_id: null, token_id: null, currency: 'USD', monthly_cost: null },
      ...{ daily_cost: 2.5, requests_per_minute: null, spent: { today: 0.02, this_month: 0.02 } },
      resets_at: {
        daily: new Date(day).toISOString(),
        monthly: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString(),
      },
    })
    const changed = await admin('PATCH', `/budgets/${id}`, { daily_cost: null, monthly_cost: 9 })
    expect(changed.body).toMatchObject({ daily_cost: null, monthly_cost: 9 })
    expect((await admin('GET', `/budgets?business_id=${business_id}`)).body.data).toMatchObject([{ id }])
    expect((await admin('POST', '/budgets', { business_id })).body.code).toBe('already_exists')
    await create('/budgets', { business_id, currency: 'CNY' })
    const foreign = await addToken(unique('firm'))
    const refused = await admin('POST', '/budgets', { business_id, token_id: foreign.id })
    expect(refused.body.errors).toMatchObject([{ pointer: '/token_id' }])
    expect((await admin('DELETE', `/budgets/${id}`)).status).toBe(204)
    expect((await admin('GET', `/budgets/${id}`)).status).toBe(404)
  })

  test('refuses runs and calls with 429 until it resets or is raised', async () => {
    const now = await nowOf(database)
    const business_id = unique('firm')
    const { token } = await addToken(business_id)
    const { id } = await create('/budgets', { business_id, daily_cost: 0.02 })
    const replayed = { headers: { 'idempotency-key': 'k' }, token, json: { prompt: 'p', user_id: 'ann' } }
    const first = await server.call('POST', '/v1/runs', replayed)
    await server.call('POST', `/v1/runs/${first.body.id}/cancel`, { token })
    expect((await chat(token)).status).toBe(200)
    await spent(id, 0.02)
    const refused = await until('a refusal', async () => {
      const reply = await submit(token)
      return reply.status === 429 && reply
    })
    const { resets_at } = (await admin('GET', `/budgets/${id}`)).body
    expect(refused.body).toMatchObject({
      code: 'budget_exhausted',
      detail: `the budget of business "${business_id}" allows 0.02 USD a day, 0.02 are spent, and it resets at ${resets_at.daily}; an operator raises daily_cost with PATCH /admin/v1/budgets/${id}`,
    })
    const wait = Number(refused.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual((Date.parse(resets_at.daily) - now.getTime()) / 1000 + 1)
    // another user's calls: read by themselves, within a second
    const call = await until('a refusal of a call', async () => {
      const reply = await chat(token)
      return reply.status === 429 && reply
    })
    expect([call.status, call.body.error.type, call.body.error.code]).toEqual([
      429,
      'insufficient_quota',
      'budget_exhausted',
    ])
    expect(call.body.error.message).toContain(`PATCH /admin/v1/budgets/${id}`)
    expect(call.headers.get('retry-after')).toBeTruthy()
    // a run that was admitted before is no new one
    expect((await server.call('POST', '/v1/runs', replayed)).status).toBe(200)
    const other = await addToken(unique('firm'))
    expect((await submit(other.token)).status).toBe(202)
    await admin('PATCH', `/budgets/${id}`, { daily_cost: 1 })
    expect((await submit(token)).status).toBe(202)
  })

  test('of a user or a token limits that one alone, and runs are charged to the token that submits them', async () => {
    const business_id = unique('firm')
    const [one, other] = [await addToken(business_id), await addToken(business_id)]
    const ofAnn = await create('/budgets', { business_id, user_id: 'ann', monthly_cost: 0.02 })
    const ofOne = await create('/budgets', { business_id, token_id: one.id, monthly_cost: 0.04 })
    say(fake, { planner: [{ text: 'Done.' }] })
    const run = { prompt: 'p', user_id: 'ann' }
    const ended = await server.call('POST', '/v1/runs/wait', { token: one.token, json: run })
    expect(ended.body.status).toBe('completed')
    await spent(ofAnn.id, 0.02)
    await spent(ofOne.id, 0.02)
    const statuses = async (user: string) =>
      Promise.all([one, other].map(async ({ token }) => (await submit(token, user)).status))
    await expect.poll(() => statuses('ann')).toEqual([429, 429])
    expect(await statuses('ben')).toEqual([202, 202])
    expect((await chat(one.token, 'ben')).status).toBe(200)
    await spent(ofOne.id, 0.04)
    await expect.poll(() => statuses('ben')).toEqual([429, 202])
    expect((await admin('GET', `/usage?business_id=${business_id}`)).body.data).toMatchObject([
      { cost: 0.04 },
    ])
  })

  test('charges the calls of a tool to it, in the usage', async () => {
    const business_id = unique('firm')
    const { token } = await addToken(business_id)
    const structured = { id: 'total', expected: 'the sum', type: 'number' }
    say(fake, {
      planner: [{ text: 'It is 42.' }],
      output: [{ text: '{"entries":[{"id":"total","value":42}]}' }],
    })
    const json = { prompt: 'p', user_id: 'ann', output: { structure: [structured] } }
    const { body } = await server.call('POST', '/v1/runs/wait', { token, json })
    expect(body.status).toBe('completed')
    const path = `/usage?group_by=tool,role&business_id=${business_id}`
    const { data } = await until('the usage of a tool', async () => {
      const reply = await admin('GET', path)
      return reply.body.data.length > 1 && reply.body
    })
    const byRole = data.map(({ role, tool }: Record<string, string>) => [role, tool])
    expect(byRole).toEqual(
      expect.arrayContaining([
        ['planner', null],
        ['output', 'structured_answer'],
      ]),
    )
  })

  test('ends a running run as `cost`', async () => {
    const business_id = unique('firm')
    const { token } = await addToken(business_id)
    const { id } = await create('/budgets', { business_id, user_id: 'ann', daily_cost: 0.03 })
    say(fake, {
      planner: Array.from({ length: 50 }, (_, n) => calling(['calculate', { expression: `${n}+${n}` }])),
    })
    const json = { prompt: 'on and on', user_id: 'ann', limits: { max_steps: 30 } }
    const { body } = await server.call('POST', '/v1/runs/wait', { token, json })
    expect(body).toMatchObject({ status: 'completed', finish_reason: 'cost', usage: { total_tokens: 30 } })
    await spent(id, 0.04)
  })

  test('refuses jobs of the queue, schedules and retries with the reason', async () => {
    const business_id = unique('firm')
    const { token } = await addToken(business_id)
    say(fake, { planner: [{ failure: { status: 400 } }] })
    const run = { prompt: 'p', user_id: 'ann' }
    const failed = await server.call('POST', '/v1/runs/wait', { token, json: run })
    expect(failed.body.status).toBe('failed')
    const { id } = await create('/budgets', { business_id, daily_cost: 0 })
    const retry = () => server.call('POST', `/v1/runs/${failed.body.id}/retry`, { token })
    expect([(await retry()).status, (await retry()).body.code]).toEqual([429, 'budget_exhausted'])

    const job = { id: unique('job'), data: { ...run, business_id, delay_ms: 3_600_000 } }
    const admit = () => deliver(runtime.features.get(intakeRef).jobs, database, job.id, job.data)
    const reason = expect.stringContaining(`PATCH /admin/v1/budgets/${id}`)
    expect(await admit()).toEqual({ errors: [{ pointer: '', detail: reason }] })
    const { body } = await admin('GET', '/rejected-jobs')
    expect(body.data).toContainEqual(expect.objectContaining({ job_id: job.id, business_id }))

    const cron = { business_id, name: 'n', cron: '* * * * *', request: { ...run, delay_ms: 3_600_000 } }
    const schedule = await create('/schedules', cron)
    await database.query(
      `UPDATE schedules SET next_at = now() - interval '1 minute', try_at = now() WHERE schedule_id = $1`,
      [schedule.id],
    )
    await fireSchedules(database, (b, request, key) => runtime.of(b).submit(request, key), silentLog)
    const fired = await until('the refusal of a schedule', async () => {
      const reply = await admin('GET', `/schedules/${schedule.id}?business_id=${business_id}`)
      return reply.body.last_error && reply.body
    })
    expect(fired).toMatchObject({
      status: 'active',
      last_error: { code: 'budget_exhausted', message: reason },
    })
    await admin('DELETE', `/schedules/${schedule.id}?business_id=${business_id}`)

    await admin('PATCH', `/budgets/${id}`, { daily_cost: null })
    expect(await admit()).toMatchObject({ status: 'queued' })
    expect((await retry()).status).toBe(202)
  })
})

test('a budget on runs and calls a minute counts those of all tokens, and opens with the next minute', async () => {
  const business_id = unique('firm')
  const tokens = [await addToken(business_id), await addToken(business_id)]
  await create('/budgets', { business_id, user_id: 'ann', requests_per_minute: 3 })
  const replies: Reply[] = []
  // a new minute may begin among them
  for (let at = 0; at < 7; at++) replies.push(await submit(tokens[at % 2]?.token ?? '', 'ann'))
  const refused = replies.find(({ status }) => status === 429)
  expect(replies.filter(({ status }) => status === 202).length).toBeLessThanOrEqual(6)
  expect(refused?.body).toMatchObject({
    code: 'budget_exhausted',
    detail: expect.stringContaining('allows 3 runs and calls a minute'),
  })
  expect(Number(refused?.headers.get('retry-after'))).toBeLessThanOrEqual(60)
  expect((await submit(tokens[0]?.token ?? '', 'ben')).status).toBe(202)
})

test('processes share a budget, and none reads the ledger for it', async () => {
  const business_id = unique('firm')
  const { token } = await addToken(business_id)
  await createBudgets(database, runtime.features.get(budgetsRef).forget).create(
    {},
    budgetSchemas.input.parse({ business_id, daily_cost: 0.02 }),
  )
  const elsewhere = createBudgetChecks(database, systemClock, async () => undefined)
  const spender = { business_id, user_id: null }
  expect(await codeOf(elsewhere.check(spender))).toBe('no error')
  await chat(token)
  await expect.poll(() => codeOf(elsewhere.check(spender))).toBe('budget_exhausted')
  const queries: string[] = []
  const watched = {
    ...database,
    asBusiness: (business: string, work: (sql: Database) => Promise<unknown>, options: object) =>
      database.asBusiness(
        business,
        (sql) =>
          work({
            ...sql,
            query: (text: string, values: unknown[]) => {
              queries.push(text)
              return sql.query(text, values)
            },
          } as never),
        options,
      ),
  } as unknown as Database
  const counted = createBudgetChecks(watched, systemClock, async () => undefined)
  for (let at = 0; at < 20; at++) expect(await codeOf(counted.check(spender))).toBe('budget_exhausted')
  expect(queries.length).toBeLessThanOrEqual(4)
  expect(queries.join()).not.toContain('usage_ledger')
})

test('a change of budgets refuses no run whose budgets are being read, and what was read before it is not kept', async () => {
  const business_id = unique('firm')
  await createBudgets(database, runtime.features.get(budgetsRef).forget).create(
    {},
    budgetSchemas.input.parse({ business_id, daily_cost: 1 }),
  )
  let reads = 0
  const changing: Database = {
    ...database,
    async asBusiness(...read) {
      const rows = await database.asBusiness(...read)
      reads++
      if (reads <= 2) checks.forget()
      return rows
    },
  }
  const checks = createBudgetChecks(changing, systemClock, async () => undefined)
  const spender = { business_id, user_id: null }
  expect(await codeOf(checks.check(spender))).toBe('no error')
  expect(reads).toBe(2)
  await checks.check(spender)
  expect(reads).toBe(4)
})
