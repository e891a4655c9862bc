// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import type { Database } from '../../../src/infra/database/database.ts'
import type { KeyEntry, Meter, Reservation } from '../../../src/models/ports/model-ports.ts'
import type { KeyLimits } from '../../../src/models/schemas/catalog.ts'
import { unique } from '../../support/backend.ts'
import { test } from '../../support/integration-test.ts'
import {
  addKey,
  addVendor,
  openMeter,
  reservationOf,
  settlementOf,
  spendAt,
  spentOf,
  usageOf,
} from '../../support/meter.ts'
import { codeOf, count, nowOf } from '../../support/runs.ts'

let database: Database
/** Of another process: a pool of its own where there are servers. */
let elsewhere: Database
let vendor: string

test.beforeAll(async ({ database: d, elsewhere: e }) => {
  ;[database, elsewhere] = [d, e]
  vendor = await addVendor(database)
})

const keyWith = (limits: KeyLimits = {}): Promise<KeyEntry> => addKey(database, vendor, limits)

const reserveMany = async (meters: readonly Meter[], make: () => Reservation, times: number) => {
  const all = await Promise.all(
    Array.from({ length: times }, async (_, at) => {
      const reservation = make()
      return { reservation, reserved: await (meters[at % meters.length] as Meter).reserve(reservation) }
    }),
  )
  return {
    granted: all.filter(({ reserved }) => reserved.granted).map(({ reservation }) => reservation),
    refused: all.flatMap(({ reserved }) => (reserved.granted ? [] : [reserved])),
  }
}

const ledgerOf = async (where: string, values: readonly unknown[]) =>
  (await database.query(`SELECT * FROM usage_ledger WHERE ${where} ORDER BY status, usage_id`, values)).rows

describe('limits', () => {
  test('of requests hold over processes, and say when it is worth trying again', async () => {
    await using one = openMeter(database)
    await using two = openMeter(elsewhere)
    const key = await keyWith({ rpm: 60 })
    const { granted, refused } = await reserveMany([one, two], () => reservationOf(key), 200)
    expect(granted).toHaveLength(60)
    expect(new Set(refused.map(({ limit }) => limit))).toEqual(new Set(['rpm']))
    for (const { retryAfterMs } of refused) {
      expect(retryAfterMs).toBeGreaterThan(0)
      expect(retryAfterMs).toBeLessThanOrEqual(61_000)
    }
    expect((await spentOf(database, key)).second).toMatchObject({ requests: 60, tokens: 600 })
  })

  test('of a minute hold in any 60 seconds, and let go of what is older', async () => {
    await using meter = openMeter(database)
    const key = await keyWith({ rpm: 3 })
    await spendAt(database, key, 'second', '70 seconds', { requests: 100 })
    await spendAt(database, key, 'second', '50 seconds', { requests: 1 })
    await spendAt(database, key, 'second', '30 seconds', { requests: 1 })
    const first = await meter.reserve(reservationOf(key))
    expect(first).toEqual({ granted: true })
    const second = await meter.reserve(reservationOf(key))
    // the one of 50 seconds ago passes out of the minute first
    expect(second).toMatchObject({ granted: false, limit: 'rpm' })
    expect(second).toSatisfy(({ retryAfterMs }) => retryAfterMs > 0 && retryAfterMs <= 11_000)
  })

  test('of tokens a minute count what is reserved until the true figure is known', async () => {
    await using one = openMeter(database)
    await using two = openMeter(elsewhere)
    const key = await keyWith({ tpm: 1000 })
    const { granted, refused } = await reserveMany([one, two], () => reservationOf(key, { tokens: 100 }), 30)
    expect(granted).toHaveLength(10)
    expect(refused[0]).toMatchObject({ limit: 'tpm' })
    for (const reservation of granted) one.settle(reservation, settlementOf({ usage: usageOf(10, 10) }))
    await one.flush()
    expect((await spentOf(database, key)).second).toMatchObject({ requests: 10, tokens: 200 })
    const again = await reserveMany([two], () => reservationOf(key, { tokens: 100 }), 30)
    expect(again.granted).toHaveLength(8)
  })

  test('of a day and of a month go by the calendar of UTC', async () => {
    await using one = openMeter(database)
    await using two = openMeter(elsewhere)
    const now = await nowOf(database)
    const daily = await keyWith({ daily_tokens: 1000 })
    await spendAt(database, daily, 'day', '1 day', { tokens: 5000 })
    await spendAt(database, daily, 'day', '0', { tokens: 700 })
    const today = await reserveMany([one, two], () => reservationOf(daily, { tokens: 100 }), 9)
    expect(today.granted).toHaveLength(3)
    const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)
    const isUntil = (end: number, { retryAfterMs }: { retryAfterMs: number }): boolean =>
      retryAfterMs > 0 && retryAfterMs <= end - now.getTime() + 1000
    expect(today.refused[0]?.limit).toBe('daily_tokens')
    expect(today.refused.every((one) => isUntil(midnight, one))).toBe(true)

    // 100 tokens in cost 100 millionths
    const monthly = await keyWith({ monthly_cost: 0.001 })
    await spendAt(database, monthly, 'month', '32 days', { cost_micro: 5000 })
    await spendAt(database, monthly, 'month', '0', { cost_micro: 550 })
    const month = await reserveMany([one, two], () => reservationOf(monthly, { tokens: 100 }), 9)
    expect(month.granted).toHaveLength(4)
    const next = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)
    expect(month.refused[0]?.limit).toBe('monthly_cost')
    expect(month.refused.every((one) => isUntil(next, one))).toBe(true)
  })

  test('are those that the database knows, also while this process has not heard of them', async () => {
    await using meter = openMeter(database)
    const key = await keyWith({ rpm: 1 })
    await database.query(`UPDATE vendor_keys SET limits = '{"rpm": 3}' WHERE key_id = $1`, [key.id])
    expect((await reserveMany([meter], () => reservationOf(key), 9)).granted).toHaveLength(3)
  })

  test('count what a key spent before it had any', async () => {
    await using meter = openMeter(database)
    const key = await keyWith()
    const { granted } = await reserveMany([meter], () => reservationOf(key), 5)
    for (const reservation of granted) meter.settle(reservation, settlementOf())
    await meter.flush()
    await database.query(`UPDATE vendor_keys SET limits = '{"daily_tokens": 60}' WHERE key_id = $1`, [key.id])
    const limited = { ...key, limits: { ...key.limits, daily_tokens: 60 } }
    expect((await reserveMany([meter], () => reservationOf(limited), 9)).granted).toHaveLength(1)
  })

  test('of one key are nothing to another', async () => {
    await using meter = openMeter(database)
    const [a, b] = [await keyWith({ rpm: 2 }), await keyWith({ rpm: 3 })]
    const keys = Array.from({ length: 10 }, (_, at) => (at % 2 ? a : b))
    const { granted } = await reserveMany([meter], () => reservationOf(keys.pop() ?? a), 10)
    expect(granted.filter(({ key }) => key?.id === a.id)).toHaveLength(2)
    expect(granted.filter(({ key }) => key?.id === b.id)).toHaveLength(3)
  })

  test('cost one statement for all requests of one tick, and none for a key without limits', async () => {
    let asked = 0
    const counted: Database = {
      ...database,
      query(text, values) {
        if (/reserve_usage|settle_usage\(\$1/.test(text)) asked++
        return database.query(text, values)
      },
    }
    await using meter = openMeter(counted, { bundleMs: 60_000 })
    const limited = await keyWith({ rpm: 1000 })
    await reserveMany([meter], () => reservationOf(limited), 64)
    expect(asked).toBe(1)
    const free = await keyWith()
    const { granted } = await reserveMany([meter], () => reservationOf(free), 64)
    expect(asked).toBe(1)
    for (const reservation of granted) meter.settle(reservation, settlementOf())
    await meter.flush()
    // settled before they were written: one statement for all of it
    expect(asked).toBe(2)
    expect(await count(database, 'usage_ledger WHERE key_id = $1', [free.id])).toBe(64)
  })
})

describe('the ledger', () => {
  test('has one row a request, with who asked for what and its cost, however often it is settled', async () => {
    await using meter = openMeter(database)
    const key = await keyWith({ rpm: 100 })
    const reservation = reservationOf(key, { business: 'b1' })
    await meter.reserve(reservation)
    const settlement = settlementOf({ usage: { ...usageOf(1000, 500, 400), reasoning_tokens: 77 } })
    meter.settle(reservation, settlement)
    meter.settle(reservation, settlement)
    await meter.flush()
    meter.settle(reservation, settlementOf({ status: 'failed' }))
    await meter.flush()
    const rows = await ledgerOf('request_id = $1', [reservation.request_id])
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({
      tenant: 'b1',
      user_id: 'u',
      run_id: null,
      role: 'planner',
      vendor_id: vendor,
      key_id: key.id,
      model_name: 'alias',
      upstream_name: 'upstream',
      status: 'succeeded',
      error_code: null,
      prompt_tokens: 1000,
      completion_tokens: 500,
      total_tokens: 1500,
      cached_tokens: 400,
      reasoning_tokens: 77,
      estimated: false,
      cost_micro: 600 + 40 + 1000,
      currency: 'USD',
      ms: 12,
    })
    expect((await spentOf(database, key)).month).toMatchObject({
      requests: 1,
      tokens: 1500,
      cost_micro: 1640,
    })
    expect(await count(database, 'usage_reservations WHERE request_id = $1', [reservation.request_id])).toBe(
      0,
    )
  })

  test('is never changed and nothing in it is deleted', async () => {
    await using meter = openMeter(database)
    const reservation = reservationOf(null)
    await meter.reserve(reservation)
    meter.settle(reservation, settlementOf())
    await meter.flush()
    for (const change of [
      'UPDATE usage_ledger SET cost_micro = 0',
      'DELETE FROM usage_ledger',
      'TRUNCATE usage_ledger',
    ])
      expect(await codeOf(database.query(change))).toMatch(/^(42501|23001)$/)
    expect(await ledgerOf('request_id = $1', [reservation.request_id])).toHaveLength(1)
  })

  test('takes our own count where the vendor gave none, and nothing for what never began', async () => {
    await using meter = openMeter(database)
    const business = unique('b')
    const [cut, refused] = [reservationOf(null, { business }), reservationOf(null, { business })]
    await Promise.all([meter.reserve(cut), meter.reserve(refused)])
    const estimate = { prompt_tokens: 30, completion_tokens: 4 }
    meter.settle(cut, settlementOf({ status: 'aborted', error_code: 'cancelled', usage: null, estimate }))
    meter.settle(refused, settlementOf({ status: 'failed', error_code: 'model_unauthorized', usage: null }))
    await meter.flush()
    expect(await ledgerOf('tenant = $1', [business])).toMatchObject([
      { status: 'aborted', total_tokens: 34, cost_micro: 38, estimated: true, key_id: null },
      {
        status: 'failed',
        total_tokens: 0,
        cost_micro: 0,
        estimated: false,
        error_code: 'model_unauthorized',
      },
    ])
  })

  test('outlives the key that it names', async () => {
    await using meter = openMeter(database)
    const key = await keyWith()
    const [before, after] = [reservationOf(key), reservationOf(key)]
    await meter.reserve(before)
    await database.query('DELETE FROM vendor_keys WHERE key_id = $1', [key.id])
    await meter.reserve(after)
    for (const reservation of [before, after]) meter.settle(reservation, settlementOf())
    await meter.flush()
    expect(await ledgerOf('key_id = $1', [key.id])).toHaveLength(2)
    const limited = { ...key, limits: { ...key.limits, rpm: 1 } }
    const late = reservationOf(limited)
    expect(await meter.reserve(late)).toEqual({ granted: true })
    meter.settle(late, settlementOf())
    await meter.flush()
    expect(await ledgerOf('key_id = $1', [key.id])).toHaveLength(3)
  })

  test('5,000 requests at once over two processes come out to the token', async () => {
    await using one = openMeter(database)
    await using two = openMeter(elsewhere)
    const keys = [await keyWith({ rpm: 1_000_000, tpm: 900_000_000 }), await keyWith(), null]
    const businesses = [unique('b'), unique('b')]
    const own = new Map<string, { requests: number; tokens: number; cost: number }>()
    await Promise.all(
      Array.from({ length: 5000 }, async (_, at) => {
        const meter = at % 2 ? one : two
        const business = businesses[at % 3 ? 0 : 1] ?? ''
        const reservation = reservationOf(keys[at % keys.length] ?? null, { business, tokens: at % 90 })
        await meter.reserve(reservation)
        const [prompt, completion, cached] = [at % 1000, at % 77, at % 13]
        meter.settle(reservation, settlementOf({ usage: usageOf(prompt, completion, cached) }))
        const sum = own.get(business) ?? { requests: 0, tokens: 0, cost: 0 }
        own.set(business, sum)
        const held = Math.min(cached, prompt)
        sum.requests++
        sum.tokens += prompt + completion
        // tenths of a millionth a token, half up
        sum.cost += Math.floor(((prompt - held) * 10 + held + completion * 20 + 5) / 10)
      }),
    )
    await Promise.all([one.flush(), two.flush()])
    for (const business of businesses) {
      const { rows } = await database.query(
        `SELECT count(*)::int AS requests, sum(total_tokens)::int8 AS tokens, sum(cost_micro)::int8 AS cost
         FROM usage_ledger WHERE tenant = $1`,
        [business],
      )
      expect(rows[0]).toEqual(own.get(business))
    }
    for (const key of [keys[0], keys[1]] as KeyEntry[]) {
      const { rows } = await database.query(
        `SELECT count(*)::int AS requests, sum(total_tokens)::int8 AS tokens, sum(cost_micro)::int8 AS cost_micro
         FROM usage_ledger WHERE key_id = $1`,
        [key.id],
      )
      const spent = await spentOf(database, key)
      for (const span of ['day', 'month']) expect(spent[span]).toEqual({ span, ...rows[0] })
    }
    expect(
      await count(database, 'usage_reservations WHERE key_id IN ($1, $2)', [keys[0]?.id, keys[1]?.id]),
    ).toBe(0)
  })
})
