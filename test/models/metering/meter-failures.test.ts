// backends: either
// asserts: invariants

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog as silent } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { createMeter } from '../../../src/models/metering/meter.ts'
import type { Reservation } from '../../../src/models/ports/model-ports.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { unique } from '../../support/backend.ts'
import { test as integrationTest } from '../../support/integration-test.ts'
import {
  addKey,
  addVendor,
  modelOf,
  openMeter,
  prices,
  reservationOf,
  settlementOf,
  spendAt,
  spentOf,
  usageOf,
} from '../../support/meter.ts'
import { codeOf, count, unavailable, until } from '../../support/runs.ts'

const test = integrationTest.extend('vendor', { scope: 'file' }, ({ database }) => addVendor(database))

const inLedger = (database: Database, reservation: Reservation): Promise<number> =>
  count(database, 'usage_ledger WHERE request_id = $1', [reservation.request_id])
const reserved = (database: Database, reservation: Reservation): Promise<number> =>
  count(database, 'usage_reservations WHERE request_id = $1', [reservation.request_id])

type Failures = ('before' | 'after')[]
/** Failures by statement. `before`: it does not reach the database; `after`: it is done, and its answer is lost. */
const unsteady = (
  database: Database,
  failures: { reserve_usage: Failures; settle_usage: Failures },
): Sql => ({
  async query(text, values) {
    const [, name] = /(reserve_usage|settle_usage)\(\$1/.exec(text) ?? []
    const failure = name && failures[name as keyof typeof failures].shift()
    if (failure === 'before') throw unavailable()
    const answer = await database.query(text, values)
    if (failure === 'after') throw unavailable()
    return answer as never
  },
})

/** As if its process had died when it had reserved. */
const leave = async (database: Database, reservation: Reservation): Promise<void> => {
  await using meter = openMeter(database)
  await meter.reserve(reservation)
  await until('the reservation is written', () => reserved(database, reservation))
}
const expire = (database: Database, reservation: Reservation) =>
  database.query(
    `UPDATE usage_reservations SET expires_at = clock_timestamp() - interval '1 hour' WHERE request_id = $1`,
    [reservation.request_id],
  )

describe('a request whose process died', () => {
  test('is entered as lost at what was reserved, once, however many processes check', async ({
    database,
    elsewhere,
    vendor,
  }) => {
    const key = await addKey(database, vendor, { tpm: 1000 })
    const reservation = reservationOf(key, { estimate: { prompt_tokens: 30, completion_tokens: 12 } })
    await leave(database, reservation)
    await expire(database, reservation)
    const meters = [database, elsewhere, database, elsewhere].map((sql) => openMeter(sql))
    await until('it is in the ledger', () => inLedger(database, reservation))
    for (const meter of meters) await meter[Symbol.asyncDispose]()
    const { rows } = await database.query('SELECT * FROM usage_ledger WHERE request_id = $1', [
      reservation.request_id,
    ])
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({
      tenant: 'b',
      status: 'lost',
      key_id: key.id,
      prompt_tokens: 30,
      completion_tokens: 12,
      total_tokens: 42,
      cost_micro: 54,
      currency: 'USD',
      estimated: true,
    })
    expect(await reserved(database, reservation)).toBe(0)
    expect((await spentOf(database, key)).day).toMatchObject({ requests: 1, tokens: 42, cost_micro: 54 })
  })

  test('is kept while it may still be running', async ({ database }) => {
    const [fresh, late] = [reservationOf(null), reservationOf(null)]
    await leave(database, fresh)
    await leave(database, late)
    // past its time, but within the grace of 30 s
    await database.query(
      `UPDATE usage_reservations SET expires_at = clock_timestamp() - interval '5 seconds' WHERE request_id = $1`,
      [late.request_id],
    )
    const gone = reservationOf(null)
    await leave(database, gone)
    await expire(database, gone)
    await using meter = openMeter(database)
    await until('the one that is gone is in the ledger', () => inLedger(database, gone))
    expect([await reserved(database, fresh), await reserved(database, late)]).toEqual([1, 1])
    meter.settle(late, settlementOf())
    await meter.flush()
    expect(
      await count(database, `usage_ledger WHERE request_id = $1 AND status = 'succeeded'`, [late.request_id]),
    ).toBe(1)
  })

  test('keeps its entry when the process turns out to live', async ({ database, vendor }) => {
    const key = await addKey(database, vendor, { tpm: 1000 })
    const reservation = reservationOf(key, { tokens: 50 })
    await leave(database, reservation)
    await expire(database, reservation)
    await using meter = openMeter(database)
    await until('it is in the ledger', () => inLedger(database, reservation))
    meter.settle(reservation, settlementOf())
    await meter.flush()
    expect(await inLedger(database, reservation)).toBe(1)
    expect((await spentOf(database, key)).day).toMatchObject({ requests: 1, tokens: 50 })
  })

  test('is found however many there are, and old seconds go', async ({ database, vendor }) => {
    const key = await addKey(database, vendor, {})
    const business = unique('b')
    await database.query(
      `INSERT INTO usage_reservations (request_id, entry, tokens, cost_micro, key_id, expires_at)
       SELECT $1 || n, (SELECT $2::json), 3, 0, $3, clock_timestamp() - interval '1 hour' FROM generate_series(1, 1203) n`,
      [
        business,
        JSON.stringify({
          tenant: business,
          role: 'r',
          vendor_id: vendor,
          endpoint_id: 'e',
          model_id: 'm',
          model_name: 'm',
          upstream_name: 'm',
          currency: 'USD',
          prompt_tokens: 3,
          completion_tokens: 0,
        }),
        null,
      ],
    )
    await spendAt(database, key, 'second', '121 seconds', { requests: 1 })
    await spendAt(database, key, 'second', '90 seconds', { requests: 1 })
    await spendAt(database, key, 'day', '41 days', { requests: 1 })
    await spendAt(database, key, 'day', '20 days', { requests: 1 })
    await using _meter = openMeter(database)
    await until(
      'old seconds are gone',
      async () => (await count(database, 'key_spending WHERE key_id = $1', [key.id])) === 2,
    )
    expect(await count(database, 'usage_ledger WHERE tenant = $1', [business])).toBe(1203)
  })
})

describe('a database that comes and goes', () => {
  test('has every entry once in the end, also where the answer of a statement was lost', async ({
    database,
    vendor,
  }) => {
    const key = await addKey(database, vendor)
    const business = unique('b')
    const failures = {
      reserve_usage: ['before', 'after', 'before', 'after', 'after'] as Failures,
      settle_usage: ['before', 'before', 'after'] as Failures,
    }
    await using meter = openMeter(unsteady(database, failures))
    const written = reservationOf(key, { business })
    await meter.reserve(written)
    await until('the reservation is written', () => reserved(database, written))
    const rest = Array.from({ length: 20 }, () => reservationOf(key, { business }))
    for (const reservation of rest) await meter.reserve(reservation)
    for (const reservation of [written, ...rest]) meter.settle(reservation, settlementOf())
    await meter.flush()
    expect(failures).toEqual({ reserve_usage: [], settle_usage: [] })
    expect(await count(database, 'usage_ledger WHERE tenant = $1', [business])).toBe(21)
    expect((await spentOf(database, key)).day).toMatchObject({ requests: 21, tokens: 210 })
  })

  test('reserves nothing for a request that was never made', async ({ database, vendor }) => {
    const key = await addKey(database, vendor, { rpm: 5 })
    await using meter = openMeter(unsteady(database, { reserve_usage: ['after'], settle_usage: [] }))
    const reservation = reservationOf(key)
    expect(await codeOf(meter.reserve(reservation))).toBe('database_unavailable')
    await meter.flush()
    expect([await reserved(database, reservation), await inLedger(database, reservation)]).toEqual([0, 0])
    expect((await spentOf(database, key)).second).toMatchObject({ requests: 0, tokens: 0 })
  })

  test('is not asked for more than memory can hold', async ({ database }) => {
    let away = true
    const sql: Sql = {
      query: (text, values) => (away ? Promise.reject(unavailable()) : database.query(text, values)),
    }
    const business = unique('b')
    await using meter = openMeter(sql, { maxBacklog: 10 })
    const granted: Reservation[] = []
    for (let at = 0; at < 10; at++) {
      const reservation = reservationOf(null, { business })
      await meter.reserve(reservation)
      granted.push(reservation)
    }
    expect(await codeOf(meter.reserve(reservationOf(null)))).toBe('database_unavailable')
    for (const reservation of granted) meter.settle(reservation, settlementOf())
    away = false
    await meter.flush()
    expect(await meter.reserve(reservationOf(null))).toEqual({ granted: true })
    expect(await count(database, 'usage_ledger WHERE tenant = $1', [business])).toBe(10)
  })

  test('gets what is left when the meter is closed, and the log gets it when it is away', async ({
    database,
  }) => {
    const reservation = reservationOf(null)
    const meter = openMeter(database, { bundleMs: 60_000 })
    await meter.reserve(reservation)
    meter.settle(reservation, settlementOf())
    await meter[Symbol.asyncDispose]()
    expect(await inLedger(database, reservation)).toBe(1)

    const logged: string[] = []
    const tell: Log = { ...silent, error: (_, message) => void logged.push(message ?? '') }
    const away: Sql = { query: () => Promise.reject(unavailable()) }
    const blind = createMeter({ database: away, clock: systemClock, log: tell, bundleMs: 1, closeMs: 50 })
    const lost = reservationOf(null)
    await blind.reserve(lost)
    blind.settle(lost, settlementOf())
    await blind[Symbol.asyncDispose]()
    expect(logged).toEqual(['closed before the database took the ledger'])
  })

  test('loses no other entry to one that it refuses', async ({ database }) => {
    const logged: unknown[] = []
    const tell: Log = { ...silent, error: (data) => void logged.push(data) }
    await using meter = createMeter({ database, clock: systemClock, log: tell, bundleMs: 5 })
    const business = unique('b')
    const all = [
      reservationOf(null, { business }),
      reservationOf(null, { business: 'no\u0000text' }),
      reservationOf(null, { business }),
    ]
    for (const reservation of all) meter.settle(reservation, settlementOf())
    await meter.flush()
    expect(await count(database, 'usage_ledger WHERE tenant = $1', [business])).toBe(2)
    expect(logged).toHaveLength(1)
  })
})

describe('no interleaving', () => {
  test('of two processes spends more than the limits, and the buckets equal the ledger', async ({
    database,
    elsewhere,
    vendor,
  }) => {
    const step = fc.record({
      who: fc.nat(1),
      tokens: fc.integer({ min: 0, max: 60 }),
      /** Settled at once with this share of what was reserved, given up, or left. */
      outcome: fc.oneof(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constant('fail' as const),
        fc.constant('leave' as const),
      ),
      wait: fc.boolean(),
    })
    const limitsOf = fc.record({
      rpm: fc.integer({ min: 1, max: 12 }),
      tpm: fc.integer({ min: 50, max: 400 }),
      daily_tokens: fc.integer({ min: 50, max: 400 }),
      monthly_cost: fc.integer({ min: 50, max: 800 }).map((micro) => micro / 1_000_000),
    })
    await fc.assert(
      fc.asyncProperty(limitsOf, fc.array(step, { maxLength: 40 }), async (limits, steps) => {
        const key = await addKey(database, vendor, limits)
        await using one = openMeter(database)
        await using two = openMeter(elsewhere)
        const calls: Promise<void>[] = []
        for (const { who, tokens, outcome, wait } of steps) {
          const meter = who ? one : two
          const reservation = reservationOf(key, {
            estimate: { prompt_tokens: 0, completion_tokens: tokens },
          })
          const call = meter.reserve(reservation).then(({ granted }) => {
            if (!granted || outcome === 'leave') return
            const used = outcome === 'fail' ? null : usageOf(0, Math.floor(tokens * outcome))
            meter.settle(reservation, settlementOf({ usage: used, status: used ? 'succeeded' : 'failed' }))
          })
          calls.push(call)
          if (wait) await call
        }
        await Promise.all(calls)
        await Promise.all([one.flush(), two.flush()])
        const spent = await spentOf(database, key)
        expect(spent.second?.requests ?? 0).toBeLessThanOrEqual(limits.rpm)
        expect(spent.second?.tokens ?? 0).toBeLessThanOrEqual(limits.tpm)
        expect(spent.day?.tokens ?? 0).toBeLessThanOrEqual(limits.daily_tokens)
        expect(spent.month?.cost_micro ?? 0).toBeLessThanOrEqual(Math.round(limits.monthly_cost * 1_000_000))
        const { rows } = await database.query(
          `SELECT count(*)::int AS requests, coalesce(sum(tokens), 0)::int AS tokens, coalesce(sum(cost_micro), 0)::int AS cost_micro
           FROM (SELECT total_tokens AS tokens, cost_micro FROM usage_ledger WHERE key_id = $1
             UNION ALL SELECT tokens, cost_micro FROM usage_reservations WHERE key_id = $1) all_of_it`,
          [key.id],
        )
        const { span: _, ...day } = spent.day ?? { span: '', requests: 0, tokens: 0, cost_micro: 0 }
        expect(day).toEqual(rows[0])
      }),
      { numRuns: 25 },
    )
  })
})

describe('money', () => {
  test('is exact beyond what a number can hold', async ({ database, vendor }) => {
    const business = unique('b')
    await using meter = openMeter(database)
    const model = modelOf(vendor, { prices: { ...prices, input: 9_007_199_254_740_991, currency: 'JPY' } })
    for (const tokens of [1, 3, 999]) {
      const reservation = reservationOf(null, { business, model })
      await meter.reserve(reservation)
      meter.settle(reservation, settlementOf({ usage: usageOf(tokens, 0) }))
    }
    await meter.flush()
    const { rows } = await database.query<{ cost: string }>(
      'SELECT sum(cost_micro)::text AS cost FROM usage_ledger WHERE tenant = $1',
      [business],
    )
    // 9007199254.740991, 27021597764.222973 and 8998192055486.250009, each rounded
    expect(BigInt(rows[0]?.cost ?? 0)).toBe(9007199255n + 27021597764n + 8998192055486n)
  })
})
