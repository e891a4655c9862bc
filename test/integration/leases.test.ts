import { setImmediate } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/infra/clock.ts'
import { type Database, one } from '../../src/infra/database/database.ts'
import { appendAction } from '../../src/infra/runs/append.ts'
import { cancelRun } from '../../src/infra/runs/cancel.ts'
import type { Claim } from '../../src/infra/runs/claim.ts'
import { keepLeases } from '../../src/infra/runs/leases.ts'
import { deleteSession } from '../../src/infra/sessions/delete.ts'
import type { Log, Sql } from '../../src/state/ports.ts'
import { type Backend, openBackend } from '../support/backend.ts'
import { claim, codeOf, count, endLease, entry, mustClaim, submitTo, until } from '../support/spine.ts'

/** Time passes for the worker when a test says so, and not for the database: no machine is too slow for a lease. */

const leaseMs = 30_000
let backend: Backend
let database: Database
let now = 0
/** Statements of the worker that are on their way. */
let asking = 0

beforeAll(async () => {
  backend = await openBackend()
  database = await backend.openDatabase()
})
beforeEach(() => {
  now = 0
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => void vi.useRealTimers())
afterAll(async () => {
  await database?.close()
  await backend?.drop()
})

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
const answering: Sql = {
  async query<Row>(text: string, values?: readonly unknown[]) {
    asking++
    try {
      return await database.query<Row>(text, values)
    } finally {
      asking--
    }
  },
}
const answered = async (): Promise<void> => {
  // what it asks in the same turn counts
  await setImmediate()
  await until('the answers', () => asking === 0)
}
/** Second by second; what the worker asks meanwhile is answered. */
const pass = async (ms: number): Promise<void> => {
  for (const end = now + ms; now < end; ) {
    now += 1000
    vi.advanceTimersByTime(1000)
    await answered()
  }
}

/** A worker's heartbeats on `sql`, with one run under them; `told` is what it heard. */
const hold = async ({ sql = answering, workerId = 'w1' }: { sql?: Sql; workerId?: string } = {}) => {
  await submitTo(database, 'a')
  const run = await mustClaim(database, workerId, leaseMs)
  const clock = { ...systemClock, monotonicMs: () => now, now: () => new Date(now) }
  const leases = keepLeases({ sql, clock, log: silent, workerId, leaseMs })
  const told: { lost: boolean; cancel: string | null } = { lost: false, cancel: null }
  const lease = leases.hold(run, now, {
    onLost() {
      told.lost = true
    },
    onCancel(reason) {
      told.cancel = reason
    },
  })
  await answered()
  const stop = async (): Promise<void> => {
    lease.letGo()
    await leases.stop()
    await database.query(`UPDATE runs SET status = 'failed', lease_until = NULL WHERE run_id = $1`, [
      run.run_id,
    ])
  }
  return { run, told, leases, lease, [Symbol.asyncDispose]: stop }
}

/** In seconds. */
const leaseEnd = async ({ run_id }: Claim): Promise<number> => {
  const text = 'SELECT extract(epoch FROM lease_until)::float8 AS at FROM runs WHERE run_id = $1'
  return (await one<{ at: number }>(database, text, [run_id]))?.at ?? 0
}

describe('a heartbeat', () => {
  test('renews the lease again and again, and tells that the worker is there', async () => {
    await using held = await hold()
    for (let beats = 0; beats < 8; beats++) {
      const before = await leaseEnd(held.run)
      await pass(leaseMs / 6)
      expect(await leaseEnd(held.run)).toBeGreaterThan(before)
    }
    expect(held.told.lost).toBe(false)
    expect(await claim(database, 'another')).toBeNull()
    expect(await count(database, `workers WHERE worker_id = 'w1' AND running = 1`)).toBe(1)
  })

  test('learns within a second that another worker has the run', async () => {
    await using held = await hold()
    await endLease(database, held.run.run_id)
    const next = await mustClaim(database, 'another')
    await pass(1000)
    expect(held.told.lost).toBe(true)
    expect(await codeOf(appendAction(database, held.run, entry(1)))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, next, entry(1)))).toBe('no fault')
  })

  test('does not bring a lease back that has ended', async () => {
    await using held = await hold()
    await endLease(database, held.run.run_id)
    await pass(leaseMs / 6)
    expect(held.told.lost).toBe(true)
    expect(await leaseEnd(held.run)).toBeLessThan(Date.now() / 1000)
  })

  test('learns within a second that the run was deleted with its session', async () => {
    await using held = await hold()
    await deleteSession(database, 'a', held.run.session_id)
    await pass(1000)
    expect(held.told.lost).toBe(true)
  })

  test('learns within a second that the run is to be cancelled, and why', async () => {
    await using held = await hold()
    await cancelRun(database, 'a', held.run.run_id, 'changed my mind')
    await pass(1000)
    expect(held.told).toMatchObject({ cancel: 'changed my mind', lost: false })
  })

  test('stops with the worker, which is forgotten', async () => {
    const held = await hold({ workerId: 'gone' })
    expect(await count(database, `workers WHERE worker_id = 'gone'`)).toBe(1)
    await held[Symbol.asyncDispose]()
    expect(await count(database, `workers WHERE worker_id = 'gone'`)).toBe(0)
  })
})

describe('a database that does not answer', () => {
  test('loses the run at 80 % of its lease, before anybody else can take it', async () => {
    const hanging: Sql = { query: () => new Promise(() => {}) }
    await using held = await hold({ sql: hanging })
    await pass(leaseMs * 0.8)
    expect(held.told.lost).toBe(false)
    await pass(leaseMs / 30)
    expect(held.told.lost).toBe(true)
    expect(await claim(database, 'too early')).toBeNull()
    await endLease(database, held.run.run_id)
    expect(await claim(database, 'another')).toMatchObject({ run_id: held.run.run_id, epoch: 2 })
  })

  test('for a moment costs nothing: the next heartbeat does not wait for the one that hangs', async () => {
    let hang = 2
    const stumbling: Sql = {
      query: (text, values) =>
        /UPDATE runs|INTO workers/.test(text) && hang-- > 0
          ? new Promise(() => {})
          : answering.query(text, values),
    }
    await using held = await hold({ sql: stumbling })
    const first = await leaseEnd(held.run)
    await pass(leaseMs * 0.8)
    expect(hang).toBeLessThan(0)
    expect(await leaseEnd(held.run)).toBeGreaterThan(first)
    await pass(leaseMs / 2)
    expect(held.told.lost).toBe(false)
  })

  test('for the list of workers alone costs no lease', async () => {
    const partly: Sql = {
      query: (text, values) =>
        text.includes('INTO workers')
          ? Promise.reject(new Error('this table is locked'))
          : answering.query(text, values),
    }
    await using held = await hold({ sql: partly })
    const first = await leaseEnd(held.run)
    await pass(leaseMs)
    expect(await leaseEnd(held.run)).toBeGreaterThan(first)
    expect(held.told.lost).toBe(false)
  })
})
