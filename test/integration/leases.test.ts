import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/infra/clock.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { appendAction } from '../../src/infra/runs/append.ts'
import { cancelRun } from '../../src/infra/runs/cancel.ts'
import type { Claim } from '../../src/infra/runs/claim.ts'
import { keepLeases } from '../../src/infra/runs/leases.ts'
import { deleteSession } from '../../src/infra/sessions/delete.ts'
import type { Log, Sql } from '../../src/state/ports.ts'
import { type Backend, openBackend } from '../support/backend.ts'
import { claim, codeOf, count, endLease, entry, mustClaim, rowOf, submitTo, until } from '../support/spine.ts'

let backend: Backend
let database: Database

beforeAll(async () => {
  backend = await openBackend()
  database = await backend.openDatabase()
})
afterAll(async () => {
  await database?.close()
  await backend?.drop()
})

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A worker's heartbeats on `sql`, with one run under them; `told` is what it heard. */
const hold = async (options: { leaseMs: number; sql?: Sql; workerId?: string }) => {
  const { leaseMs, sql = database, workerId = 'w1' } = options
  await submitTo(database, 'a')
  const at = performance.now()
  const run = await mustClaim(database, workerId, leaseMs)
  const leases = keepLeases({ sql, clock: systemClock, log: silent, workerId, leaseMs })
  const told: { lost: boolean; lostAfterMs: number; cancel: string | null } = {
    lost: false,
    lostAfterMs: 0,
    cancel: null,
  }
  const lease = leases.hold(run, at, {
    onLost() {
      if (!told.lost) told.lostAfterMs = performance.now() - at
      told.lost = true
    },
    onCancel(reason) {
      told.cancel = reason
    },
  })
  const stop = async (): Promise<void> => {
    lease.letGo()
    await leases.stop()
    await database.query(`UPDATE runs SET status = 'failed', lease_until = NULL WHERE run_id = $1`, [
      run.run_id,
    ])
  }
  return { run, told, leases, lease, [Symbol.asyncDispose]: stop }
}

const leaseEnd = async (run: Claim): Promise<number> =>
  Number((await rowOf(database, run.run_id)).lease_until ?? 0)

describe('a heartbeat', () => {
  test('renews the lease again and again, and tells that the worker is there', async () => {
    await using held = await hold({ leaseMs: 600 })
    const first = await leaseEnd(held.run)
    await until('a lease longer than it was given', async () => (await leaseEnd(held.run)) > first + 1200)
    expect(held.told.lost).toBe(false)
    expect(await claim(database, 'another')).toBeNull()
    expect(await count(database, `workers WHERE worker_id = 'w1' AND running = 1`)).toBe(1)
  })

  test('learns that another worker has the run', async () => {
    await using held = await hold({ leaseMs: 1200 })
    await endLease(database, held.run.run_id)
    const next = await mustClaim(database, 'another')
    await until('the loss', () => held.told.lost)
    expect(await codeOf(appendAction(database, held.run, entry(1)))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, next, entry(1)))).toBe('no fault')
  })

  test('does not bring a lease back that has ended', async () => {
    await using held = await hold({ leaseMs: 1200 })
    await endLease(database, held.run.run_id)
    await until('the loss', () => held.told.lost)
    expect(await leaseEnd(held.run)).toBeLessThan(Date.now())
  })

  test('learns within a second that the run was deleted with its session', async () => {
    await using held = await hold({ leaseMs: 30_000 })
    await deleteSession(database, 'a', held.run.session_id)
    await until('the loss', () => held.told.lost, 2000)
  })

  test('learns within a second that the run is to be cancelled, and why', async () => {
    await using held = await hold({ leaseMs: 30_000 })
    await cancelRun(database, 'a', held.run.run_id, 'changed my mind')
    await until('the request', () => held.told.cancel, 2000)
    expect(held.told).toMatchObject({ cancel: 'changed my mind', lost: false })
  })

  test('stops with the worker, which is forgotten', async () => {
    const held = await hold({ leaseMs: 600, workerId: 'gone' })
    await held[Symbol.asyncDispose]()
    expect(await count(database, `workers WHERE worker_id = 'gone'`)).toBe(0)
  })
})

describe('a database that does not answer', () => {
  test('loses the run at 80 % of its lease, before anybody else can take it', async () => {
    const hanging: Sql = { query: () => new Promise(() => {}) }
    await using held = await hold({ leaseMs: 1000, sql: hanging })
    await until('the self-fence', () => held.told.lost)
    expect(held.told.lostAfterMs).toBeGreaterThanOrEqual(800)
    expect(await claim(database, 'too early')).toBeNull()
    await until('the take-over', () => claim(database, 'another'))
  })

  test('for a moment costs nothing: the next heartbeat does not wait for the one that hangs', async () => {
    let hang = 2
    const stumbling: Sql = {
      query: (text, values) => (hang-- > 0 ? new Promise(() => {}) : database.query(text, values)),
    }
    await using held = await hold({ leaseMs: 1500, sql: stumbling })
    const first = await leaseEnd(held.run)
    await until('a renewal', async () => held.told.lost || (await leaseEnd(held.run)) > first + 1500)
    expect(held.told.lost).toBe(false)
  })

  test('for the list of workers alone costs no lease', async () => {
    const partly: Sql = {
      query: (text, values) =>
        text.includes('INTO workers')
          ? Promise.reject(new Error('this table is locked'))
          : database.query(text, values),
    }
    await using held = await hold({ leaseMs: 600, sql: partly })
    const first = await leaseEnd(held.run)
    await until('a renewal', async () => held.told.lost || (await leaseEnd(held.run)) > first + 600)
    expect(held.told.lost).toBe(false)
  })
})
