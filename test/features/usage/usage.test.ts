// backends: either

import { describe, expect } from 'vitest'
import { databaseRef } from '../../../src/features/core.ref.ts'
import type { UsageGroup } from '../../../src/features/usage/usage-schemas.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { KeyEntry } from '../../../src/models/ports/model-ports.ts'
import { createFakeRuntime } from '../../support/fake-runtime.ts'
import { type Call, startServer, type TestServer } from '../../support/http.ts'
import { test } from '../../support/integration-test.ts'
import {
  addKey,
  addVendor,
  modelOf,
  openMeter,
  prices,
  reservationOf,
  settlementOf,
  usageOf,
} from '../../support/meter.ts'
import { submitTo } from '../../support/runs.ts'

let database: Database
let server: TestServer
let vendors: string[]
let keys: KeyEntry[]

const call = (method: string, path: string, more: Call = {}) =>
  server.call(method, `/admin/v1/usage${path}`, { token: 'the-admin', ...more })

const all = async (query: string): Promise<UsageGroup[]> => {
  const reply = await call('GET', query)
  expect(reply.status).toBe(200)
  expect(reply.body.next_cursor).toBeNull()
  return reply.body.data
}

/** Days at which the entries below were made, in UTC. */
const days = ['2021-03-30', '2021-03-31', '2021-04-01']

test.beforeAll(async ({ database: d }) => {
  database = d
  const fake = createFakeRuntime()
  fake.services[databaseRef.id] = database
  server = await startServer({ runtime: fake.runtime, auth: 'required', adminToken: 'the-admin' })
  fake.tokens.set('boss', { business_id: 'acme', roles: ['admin'] })
  vendors = [await addVendor(database, 'one vendor'), await addVendor(database, 'another vendor')]
  keys = [await addKey(database, vendors[0] as string), await addKey(database, vendors[1] as string)]
  await enter()
  return () => server.close()
})

/** 60 requests: even ones of acme to the first vendor in USD, odd ones of globex to the second in CNY; users u0 to u2. */
const enter = async (): Promise<void> => {
  await using meter = openMeter(database)
  for (let at = 0; at < 60; at++) {
    const side = at % 2
    const vendor = vendors[side] as string
    const model = modelOf(vendor, {
      id: `mod_${side}`,
      name: `alias-${side}`,
      upstream_name: `upstream-${side}`,
      prices: { ...prices, currency: side ? 'CNY' : 'USD' },
    })
    const reservation = reservationOf(keys[side] as KeyEntry, {
      model,
      caller: { business_id: side ? 'globex' : 'acme', user_id: `u${at % 3}`, run_id: null },
    })
    meter.settle(reservation, settlementOf({ usage: usageOf(100, 10, 20) }))
  }
  const unpriced = reservationOf(null, {
    model: modelOf('ven_gone', { id: 'mod_free', name: 'free', upstream_name: 'free', prices: null }),
    caller: { business_id: 'acme', user_id: null, run_id: 'run_1' },
  })
  const estimate = { prompt_tokens: 5, completion_tokens: 1 }
  meter.settle(unpriced, settlementOf({ status: 'aborted', usage: null, estimate }))
  meter.settle(
    reservationOf(keys[0] as KeyEntry, { caller: { business_id: 'acme', user_id: 'u0', run_id: null } }),
    settlementOf({ status: 'failed', error_code: 'model_unauthorized', usage: null }),
  )
  await meter.flush()
  // the ledger never changes, so what is entered on other days is entered anew
  for (const [at, day] of days.entries())
    await database.query(
      `INSERT INTO usage_ledger (request_id, at, tenant, user_id, role, vendor_id, key_id, endpoint_id, model_id, model_name,
         upstream_name, status, prompt_tokens, completion_tokens, total_tokens, cost_micro, currency, ms)
       SELECT 'old ' || $1::text || n, $1::text::timestamptz + interval '23 hours', 'initech', 'u0', 'r', $2, $3, 'e', 'mod_0', 'old-alias',
         'upstream-0', 'succeeded', 1000, $4::int, 1000 + $4::int, 123456, 'USD', 1 FROM generate_series(1, 3) n`,
      [`${day} 00:00:00+00`, vendors[0], keys[0]?.id, at],
    )
}

describe('GET /admin/v1/usage', () => {
  test('sums everything, each currency by itself', async () => {
    expect(await all('?from=2021-05-01')).toEqual([
      {
        requests: 30,
        estimated_requests: 0,
        prompt_tokens: 3000,
        completion_tokens: 300,
        total_tokens: 3300,
        cached_tokens: 600,
        reasoning_tokens: 0,
        cost: 0.00306,
        currency: 'CNY',
      },
      expect.objectContaining({ requests: 31, total_tokens: 3300, cost: 0.00306, currency: 'USD' }),
      expect.objectContaining({
        requests: 1,
        estimated_requests: 1,
        total_tokens: 6,
        cost: 0,
        currency: null,
      }),
    ])
  })

  test('groups by any of its names, with names beside ids', async () => {
    expect(await all('?group_by=vendor,key,model&from=2021-05-01&business_id=globex')).toMatchObject([
      {
        vendor_id: vendors[1],
        vendor: 'another vendor',
        key_id: keys[1]?.id,
        key: keys[1]?.label,
        model_id: 'mod_1',
        model: 'alias-1',
        requests: 30,
      },
    ])
    expect(await all('?group_by=vendor,key&run_id=run_1')).toMatchObject([
      { vendor_id: 'ven_gone', vendor: null, key_id: null, key: null, requests: 1 },
    ])
    expect((await all('?group_by=day&to=2021-04-01')).map(({ day, requests }) => [day, requests])).toEqual(
      days.map((day) => [day, 3]),
    )
    expect(await all('?group_by=business&to=2021-03-31')).toMatchObject([
      { business_id: 'initech', requests: 6, completion_tokens: 3, cost: 0.740736 },
    ])
  })

  test('groups by run, session and role; the session of a run that is gone is null', async ({ database }) => {
    expect(await all('?group_by=run,session,role&run_id=run_1')).toMatchObject([
      { business_id: 'acme', run_id: 'run_1', session_id: null, role: expect.any(String), requests: 1 },
    ])
    const { id, session_id } = await submitTo(database, 'hooli')
    await database.query(
      `INSERT INTO usage_ledger (request_id, tenant, user_id, run_id, role, vendor_id, endpoint_id, model_id, model_name, upstream_name,
         status, prompt_tokens, completion_tokens, total_tokens, cost_micro, currency, ms)
       SELECT 'hooli ' || role, 'hooli', 'u1', $1, role, 'v', 'e', 'm', 'm', 'm', 'succeeded', 10, 1, 11, 0, 'XXX', 1
       FROM (VALUES ('planner'), ('vision')) roles (role)`,
      [id],
    )
    const groups = await all('?group_by=role,session&business_id=hooli')
    expect(groups.map((group) => [group.session_id, group.role, group.total_tokens])).toEqual([
      [session_id, 'planner', 11],
      [session_id, 'vision', 11],
    ])
  })

  test('never takes the users of two businesses for one', async () => {
    const groups = await all('?group_by=user')
    const u0 = groups
      .filter(({ user_id }) => user_id === 'u0')
      .map((group) => [group.business_id, group.requests])
    expect(u0).toEqual([
      ['acme', 11],
      ['globex', 10],
      ['initech', 9],
    ])
    expect(groups.find(({ user_id }) => user_id === null)).toMatchObject({ business_id: 'acme', requests: 1 })
  })

  test('gives by business what the ledger has, to the token', async () => {
    const groups = await all('?group_by=business')
    const { rows } = await database.query(
      `SELECT tenant AS business_id, currency, sum(total_tokens)::int8 AS total_tokens, sum(cost_micro)::int8 AS micro
       FROM usage_ledger GROUP BY tenant, currency ORDER BY tenant, currency`,
    )
    expect(
      groups.map(({ business_id, currency, total_tokens, cost }) => ({
        business_id,
        currency: currency ?? 'XXX',
        total_tokens,
        micro: Math.round(cost * 1_000_000),
      })),
    ).toEqual(rows)
  })

  test('takes times and days: a day as `to` counts as a whole', async () => {
    const requests = async (query: string) =>
      (await all(query)).reduce((sum, group) => sum + group.requests, 0)
    expect(await requests('?from=2021-03-31&to=2021-03-31')).toBe(3)
    expect(await requests('?from=2021-03-31T23:00:00Z&to=2021-04-01T23:00:00Z')).toBe(3)
    expect(await requests('?from=2021-03-31T23:00:01Z&to=2021-04-01T23:00:00%2B01:00')).toBe(0)
  })

  test('goes from page to page without a gap, within the same groups only', async () => {
    const whole = await all('?group_by=day,business,user,model')
    const seen: UsageGroup[] = []
    let cursor = ''
    do {
      const reply = await call('GET', `?group_by=model,user,business,day&limit=2${cursor}`)
      expect(reply.body.data.length).toBeLessThanOrEqual(2)
      seen.push(...reply.body.data)
      cursor = reply.body.next_cursor && `&cursor=${reply.body.next_cursor}`
    } while (cursor)
    expect(seen).toEqual(whole)
    const { next_cursor } = (await call('GET', '?group_by=day&limit=1')).body
    const other = await call('GET', `?group_by=model&cursor=${next_cursor}`)
    expect([other.status, other.body.errors?.[0]?.pointer]).toEqual([422, '/cursor'])
  })

  test.each([
    ['?group_by=vendor,colour', '/group_by', '"colour" is not known'],
    ['?group_by=day,day', '/group_by', '"day" appears twice'],
    ['?from=yesterday', '/from', 'must be a day'],
    ['?from=2021-02-30', '/from', 'must be a day'],
    ['?to=0001-01-01', '/to', ''],
    ['?colour=red', '/colour', 'unknown field'],
    ['?limit=0', '/limit', 'integer from 1 to 200'],
    ['?cursor=abc', '/cursor', ''],
  ])('refuses %s and says why', async (query, pointer, detail) => {
    const reply = await call('GET', query)
    expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
    expect(reply.body.errors).toHaveLength(1)
    expect(reply.body.errors[0].pointer).toBe(pointer)
    expect(reply.body.errors[0].detail).toContain(detail)
  })

  test('is open to the admin token alone', async () => {
    expect((await call('GET', '', { token: 'boss' })).status).toBe(403)
  })
})
