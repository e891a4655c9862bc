// backends: either

import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, vi } from 'vitest'
import { unique } from '../support/backend.ts'
import { startServer, type TestServer } from '../support/http.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'
import { count, until } from '../support/runs.ts'
import { say } from '../support/script.ts'
import { fakeModels, openTestRuntime } from '../support/test-runtime.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { worker: false })
let server: TestServer
test.beforeAll(({ server: s }) => {
  server = s
})

const call = (method: string, path: string, json?: unknown, token: string = adminToken) =>
  server.call(method, `/admin/v1/${path}`, { token, ...(json !== undefined && { json }) })
const audit = async (query: string) => (await call('GET', `audit?${query}`)).body.data
const newOperator = async (name: string) => (await call('POST', 'operators', { name })).body

describe('what admins change', () => {
  test('is logged with who did it, from where, and the names of the fields', async ({ database }) => {
    const ann = await newOperator('Ann')
    expect(ann).toMatchObject({
      id: expect.stringMatching(/^opr_/),
      token: expect.stringMatching(/^mason_op_/),
    })
    const secret = `sk-${unique('nightjar')}`
    const vendor = await call('POST', 'vendors', { name: unique('vendor') }, ann.token)
    expect(vendor.status).toBe(201)
    const key = await call('POST', `vendors/${vendor.body.id}/keys`, { label: 'k', secret }, ann.token)
    const path = `vendors/${vendor.body.id}/keys/${key.body.id}`
    const changed = await call('POST', `${path}/rotate`, { secret: `${secret}-2` }, ann.token)
    expect([key.status, changed.status, changed.text]).toEqual([201, 200, changed.text])
    const rows = await audit(`token_id=${ann.id}`)
    expect(rows).toMatchObject([
      {
        operation: 'rotateKey',
        resource: `/admin/v1/${path}/rotate`,
        resource_id: key.body.id,
        fields: ['secret'],
      },
      {
        operation: 'createKey',
        resource_id: key.body.id,
        fields: expect.arrayContaining(['label', 'secret']),
      },
      {
        ...{ operation: 'createVendor', resource: '/admin/v1/vendors', resource_id: vendor.body.id },
        ...{ token_label: 'Ann', address: '127.0.0.1', request_id: vendor.headers.get('x-request-id') },
      },
    ])
    expect(JSON.stringify(rows)).not.toContain('nightjar')
    // those of the settings' token have no id
    expect(await audit(`resource_id=${ann.id}`)).toMatchObject([
      { operation: 'createOperator', token_id: null, token_label: 'MASON_ADMIN_TOKEN' },
    ])
    expect(await audit(`token_id=${ann.id}&operation=createKey`)).toHaveLength(1)
    expect(await audit(`token_id=${ann.id}&from=2020-01-01&to=2020-01-02`)).toEqual([])
    expect(await count(database, `audit_log WHERE audit_log::text LIKE '%nightjar%'`)).toBe(0)
  })

  test('is logged where it changes something, and not where it is refused, not found or only read', async () => {
    const logged = async (method: string, path: string, json?: unknown) => {
      const { status, headers } = await call(method, path, json)
      return [status, (await audit(`request_id=${headers.get('x-request-id')}`)).length > 0]
    }
    const id = unique('biz')
    expect(await logged('POST', 'businesses', { id })).toEqual([201, true])
    expect(await logged('POST', 'businesses', { id })).toEqual([409, false])
    expect(await logged('PATCH', `businesses/${id}`, { learning: false })).toEqual([200, true])
    expect(await logged('PATCH', `businesses/${id}`, { learning: 7 })).toEqual([422, false])
    expect(await logged('PATCH', 'tokens/none', { label: 'x' })).toEqual([404, false])
    expect(await logged('DELETE', 'tokens/none')).toEqual([404, false])
    expect(await logged('GET', 'vendors')).toEqual([200, false])
    const own = [{ operation: 'changeBusiness' }, { operation: 'createBusiness', resource_id: id }]
    expect(await audit(`business_id=${id}`)).toMatchObject(own)
    const token = await call('POST', 'tokens', { business_id: id, label: 'shop' })
    expect(await audit(`business_id=${id}`)).toMatchObject([
      { operation: 'createToken', resource_id: token.body.id, business_id: id },
      ...own,
    ])
    await call('POST', 'users', { business_id: id, user_id: 'ann', profile: {} })
    await call('POST', `businesses/${id}/webhook/rotate`, {})
    expect(await audit(`business_id=${id}&limit=2`)).toMatchObject([
      { operation: 'rotateWebhookSecret', resource_id: id, fields: [] },
      { operation: 'createUser', resource_id: 'ann', fields: ['business_id', 'user_id', 'profile'] },
    ])
    expect(await logged('DELETE', `tokens/${token.body.id}`)).toEqual([204, true])
    expect((await call('GET', 'audit', undefined, token.body.token)).status).toBe(401)
  })
})

describe('the token of an operator', () => {
  test('is an admin token until it is revoked, is listed without the token, and can be renamed', async ({
    database,
  }) => {
    const bob = await newOperator('Bob')
    expect((await call('GET', 'vendors', undefined, bob.token)).status).toBe(200)
    const runs = await server.call('GET', '/v1/runs?business_id=other', { token: bob.token })
    expect(runs.status).toBe(200)
    expect(await count(database, `operators WHERE operators::text LIKE '%${bob.token}%'`)).toBe(0)
    expect((await call('PATCH', `operators/${bob.id}`, { name: 'Robert' })).body).toEqual({
      ...{ id: bob.id, name: 'Robert', created_at: bob.created_at },
    })
    const { data } = (await call('GET', 'operators')).body
    expect(data).toContainEqual({ id: bob.id, name: 'Robert', created_at: bob.created_at })
    expect((await call('DELETE', `operators/${bob.id}`)).status).toBe(204)
    expect((await call('GET', 'vendors', undefined, bob.token)).status).toBe(401)
    expect((await call('GET', `operators/${bob.id}`)).status).toBe(404)
  })
})

test('without a request of an admin no promise of the process has to look into a storage', async ({
  backend,
  model,
}) => {
  const run = vi.spyOn(AsyncLocalStorage.prototype, 'run')
  const disable = vi.spyOn(AsyncLocalStorage.prototype, 'disable')
  const runtime = await openTestRuntime(backend, { models: fakeModels(model.baseUrl) })
  const own = await startServer({ runtime, auth: 'required', adminToken })
  say(model, { planner: [{ text: 'Done.' }] })
  expect((await runtime.complete({ prompt: 'Hello' })).status).toBe('completed')
  await own.call('POST', '/admin/v1/operators', { token: adminToken, json: { name: 'Ann' } })
  // of requests; visits have none
  const used = new Set(run.mock.contexts)
  expect(used.size).toBe(1)
  await until('it is off', () => [...used].every((storage) => disable.mock.contexts.includes(storage)))
  vi.restoreAllMocks()
  await own.close()
  await runtime.close()
})
