// backends: either

import { expect } from 'vitest'
import { businessSchemas } from '../../src/accounts/account-schemas.ts'
import { ensureBusiness } from '../../src/accounts/businesses.ts'
import { createQuotas } from '../../src/accounts/quotas.ts'
import type { Database } from '../../src/infra/database/database.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import { unique } from '../support/backend.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'
import { codeOf } from '../support/runs.ts'

const test = runtimeTest
const none = { storage_bytes: null, queued_runs: null, running_runs: null, requests_per_minute: null }
const defaults = { storageBytes: 1_000_000, queuedRuns: 10_000, requestsPerMinute: null }

/** Two API processes, whose clocks the test moves. */
const openProcesses = (database: Database, settings: Partial<typeof defaults> | object = {}) => {
  let ms = 0
  const clock = { monotonicMs: () => ms } as Clock
  const open = () => createQuotas(database, { ...defaults, ...settings }, clock)
  const pass = (more: number): void => {
    ms += more
  }
  return { one: open(), other: open(), pass }
}
const allowed = async (check: () => Promise<void>, times: number): Promise<number> => {
  let count = 0
  for (let at = 0; at < times; at++) if ((await codeOf(check())) === 'no error') count += 1
  return count
}

test('an admin sets quotas of a business one by one, and null gives the default back', async ({ server }) => {
  const id = unique('quota')
  const call = (method: string, path: string, json?: object) =>
    server.call(method, path, { token: adminToken, ...(json && { json }) })
  const path = `/admin/v1/businesses/${id}`
  const made = await call('POST', '/admin/v1/businesses', { id, quotas: { queued_runs: 3 } })
  expect([made.status, made.body.quotas]).toEqual([201, { ...none, queued_runs: 3 }])
  const changed = await call('PATCH', path, { quotas: { storage_bytes: 5e9, running_runs: 2 } })
  expect(changed.body.quotas).toEqual({ ...none, storage_bytes: 5e9, queued_runs: 3, running_runs: 2 })
  await call('PATCH', path, { learning: false, quotas: { queued_runs: null } })
  expect((await call('GET', path)).body.quotas).toEqual({ ...none, storage_bytes: 5e9, running_runs: 2 })
  const refused = await call('PATCH', path, { quotas: { queued_runs: 0 } })
  expect(refused.body.errors).toMatchObject([{ pointer: '/quotas/queued_runs' }])
})

test('a business above its requests a minute gets 429 with Retry-After, others do not', async ({
  server,
}) => {
  const id = unique('quota')
  const admin = (method: string, path: string, json: object) =>
    server.call(method, path, { token: adminToken, json })
  await admin('POST', '/admin/v1/businesses', { id, quotas: { requests_per_minute: 5 } })
  const tokenOf = async (business_id: string): Promise<string> =>
    (await admin('POST', '/admin/v1/tokens', { business_id, label: 'l' })).body.token
  const token = await tokenOf(id)
  const get = (token: string) => server.call('GET', '/v1/runs', { token })
  const replies = []
  // a new minute may begin among them
  for (let at = 0; at < 11; at++) replies.push(await get(token))
  const refused = replies.find(({ status }) => status === 429)
  expect(refused?.body).toMatchObject({
    code: 'too_many_requests',
    detail: 'the business may send 5 requests a minute, and has sent them',
    remedy: expect.stringContaining('quotas.requests_per_minute'),
  })
  const wait = Number(refused?.headers.get('retry-after'))
  expect(wait).toBeGreaterThan(0)
  expect(wait).toBeLessThanOrEqual(60)
  expect(replies.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(10)
  expect((await get(await tokenOf(unique('quota')))).status).toBe(200)
})

test('two processes count requests together, but for what one admitted since it last counted', async ({
  database,
}) => {
  const minuteOf = async () =>
    (await database.query(`SELECT date_trunc('minute', clock_timestamp())::text AS minute`)).rows
  const countThrice = async (): Promise<number[][]> => {
    const business = unique('quota')
    await ensureBusiness(database, business)
    const { one, other, pass } = openProcesses(database, { requestsPerMinute: 100 })
    const rounds: number[][] = []
    for (let round = 0; round < 3; round++) {
      pass(1000)
      const admitted = await allowed(() => one.checkRequest(business), 60)
      rounds.push([admitted, await allowed(() => other.checkRequest(business), 60)])
    }
    return rounds
  }
  for (;;) {
    const minute = await minuteOf()
    const rounds = await countThrice()
    // again where another minute began in between
    if (JSON.stringify(await minuteOf()) !== JSON.stringify(minute)) continue
    expect(rounds).toEqual([
      [60, 60],
      [40, 0],
      [0, 0],
    ])
    break
  }
})

test('a business stores no more than its quota; what it deletes makes room', async ({
  server,
  runtime,
  database,
}) => {
  const id = unique('quota')
  await runtime.admin.businesses.create(
    {},
    businessSchemas.input.parse({ id, quotas: { storage_bytes: 100 } }),
  )
  const post = (raw: string, headers: Record<string, string> = {}) =>
    server.call('POST', `/v1/files?business_id=${id}`, {
      token: adminToken,
      ...(raw && { raw }),
      headers: { 'x-file-name': 'a', 'content-type': 'text/plain', ...headers },
    })
  const first = await post('x'.repeat(60))
  expect(first.status, first.text).toBe(201)
  for (const refused of [await post('y'.repeat(60)), await post('', { 'upload-length': '60' })])
    expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
      403,
      'quota_exceeded',
      'the business may store 100 bytes, and has 60',
    ])
  const content_base64 = Buffer.alloc(60).toString('base64')
  const request = { prompt: 'p', user_id: 'u', files: [{ name: 'a', type: 'b', content_base64 }] }
  expect(await codeOf(runtime.of(id).submit(request))).toBe('quota_exceeded')
  await server.call('DELETE', `/v1/files/${first.body.id}?business_id=${id}`, { token: adminToken })
  const { one } = openProcesses(database)
  expect(await codeOf(one.checkStorage(id, 100))).toBe('no error')
  expect(await codeOf(one.checkStorage(id, 1))).toBe('quota_exceeded')
})

test('a business queues no more runs than its quota', async ({ runtime }) => {
  const id = unique('quota')
  await runtime.admin.businesses.create({}, businessSchemas.input.parse({ id, quotas: { queued_runs: 2 } }))
  const submit = () => runtime.of(id).submit({ prompt: 'p', user_id: 'u', delay_ms: 1_000_000 })
  expect(await codeOf(Promise.all([submit(), submit()]))).toBe('no error')
  expect(await codeOf(submit())).toBe('too_many_requests')
})
