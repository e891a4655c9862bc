// backends: either

import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import type { RunClaim } from '../../../src/engine/runs/claim.ts'
import { startLeaseRenewal } from '../../../src/engine/runs/leases.ts'
import { cancelRun } from '../../../src/engine/runs/settlement.ts'
import { deleteSession } from '../../../src/features/user-memory/store/delete-session.ts'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { test } from '../../support/integration-test.ts'
import {
  appendAction,
  claim,
  codeOf,
  count,
  endLease,
  entry,
  mustClaim,
  submitTo,
  until,
} from '../../support/runs.ts'

/** Time passes for the worker when a test says so, and not for the database: no machine is too slow for a lease. */

const leaseMs = 30_000
let database: Database
let now = 0
/** Statements of the worker that are on their way. */
let asking = 0

test.beforeAll(({ database: d }) => {
  database = d
})
beforeEach(() => {
  now = 0
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => void vi.useRealTimers())

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

/** A worker's heartbeats on `sql`, with one run under them; `signals` is what it received. */
const hold = async ({ sql = answering, workerId = 'w1' }: { sql?: Sql; workerId?: string } = {}) => {
  await submitTo(database, 'a')
  const run = await mustClaim(database, workerId, leaseMs)
  const clock = { ...systemClock, monotonicMs: () => now, now: () => new Date(now) }
  const leases = startLeaseRenewal({ sql, clock, log: silent, workerId, leaseMs })
  const signals: { lost: boolean; cancel: string | null } = { lost: false, cancel: null }
  const lease = leases.hold(run, now, {
    onLost() {
      signals.lost = true
    },
    onCancel(reason) {
      signals.cancel = reason
    },
  })
  await answered()
  const stop = async (): Promise<void> => {
    lease.release()
    await leases.stop()
    await database.query(`UPDATE runs SET status = 'failed', lease_until = NULL WHERE run_id = $1`, [
      run.run_id,
    ])
  }
  return { run, signals, leases, lease, [Symbol.asyncDispose]: stop }
}

/** In seconds. */
const leaseEnd = async ({ run_id }: RunClaim): Promise<number> => {
  const text = 'SELECT extract(epoch FROM lease_until)::float8 AS at FROM runs WHERE run_id = $1'
  return (await queryOne<{ at: number }>(database, text, [run_id]))?.at ?? 0
}

describe('a heartbeat', () => {
  test('renews the lease again and again, and reports the worker as alive', async () => {
    await using held = await hold()
    for (let beats = 0; beats < 8; beats++) {
      const before = await leaseEnd(held.run)
      await pass(leaseMs / 6)
      expect(await leaseEnd(held.run)).toBeGreaterThan(before)
    }
    expect(held.signals.lost).toBe(false)
    expect(await claim(database, 'another')).toBeNull()
    expect(await count(database, `workers WHERE worker_id = 'w1' AND running = 1`)).toBe(1)
  })

  test('learns within a second that another worker has the run', async () => {
    await using held = await hold()
    await endLease(database, held.run.run_id)
    const next = await mustClaim(database, 'another')
    await pass(1000)
    expect(held.signals.lost).toBe(true)
    expect(await codeOf(appendAction(database, held.run, entry(1)))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, next, entry(1)))).toBe('no error')
  })

  test('does not bring a lease back that has ended', async () => {
    await using held = await hold()
    await endLease(database, held.run.run_id)
    await pass(leaseMs / 6)
    expect(held.signals.lost).toBe(true)
    const over = 'runs WHERE run_id = $1 AND lease_until <= clock_timestamp()'
    expect(await count(database, over, [held.run.run_id])).toBe(1)
  })

  test('learns within a second that the run was deleted with its session', async () => {
    await using held = await hold()
    await deleteSession(database, 'a', held.run.session_id)
    await pass(1000)
    expect(held.signals.lost).toBe(true)
  })

  test('learns within a second that the run is to be cancelled, and why', async () => {
    await using held = await hold()
    await cancelRun(database, 'a', held.run.run_id, 'changed my mind')
    await pass(1000)
    expect(held.signals).toMatchObject({ cancel: 'changed my mind', lost: false })
  })

  test('stops with the worker, which is forgotten', async () => {
    const held = await hold({ workerId: 'gone' })
    expect(await count(database, `workers WHERE worker_id = 'gone'`)).toBe(1)
    await held[Symbol.asyncDispose]()
    expect(await count(database, `workers WHERE worker_id = 'gone'`)).toBe(0)
  })
})

describe('a database that does not answer', () => {
  test('loses the run at 80 % of its lease, before another worker can take it', async () => {
    const hanging: Sql = { query: () => new Promise(() => {}) }
    await using held = await hold({ sql: hanging })
    await pass(leaseMs * 0.8)
    expect(held.signals.lost).toBe(false)
    await pass(leaseMs / 30)
    expect(held.signals.lost).toBe(true)
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
    expect(held.signals.lost).toBe(false)
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
    expect(held.signals.lost).toBe(false)
  })
})
