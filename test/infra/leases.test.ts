import { afterEach, describe, expect, test } from 'vitest'
import { keepLeases, type Leases } from '../../src/infra/runs/leases.ts'
import type { Clock, Sql } from '../../src/state/ports.ts'

/** Renews whatever it is asked to. */
const sql: Sql = {
  query: async <Row>(text: string, [rows]: readonly unknown[] = []) => ({
    rows: (text.includes('UPDATE runs') ? JSON.parse(String(rows)) : []) as Row[],
  }),
}
const log = { debug() {}, info() {}, warn() {}, error() {} }
const run = { tenant: 'b', run_id: 'r', epoch: 1 }
let leases: Leases
afterEach(() => leases.stop())

const hold = (): { isGood(): boolean; wall: { ms: number }; monotonic: { ms: number } } => {
  const [wall, monotonic] = [{ ms: 1_000_000_000 }, { ms: 5000 }]
  const clock: Clock = {
    now: () => new Date(wall.ms),
    monotonicMs: () => monotonic.ms,
    sleep: async () => {},
  }
  leases = keepLeases({ sql, clock, log, workerId: 'w', leaseMs: 3_600_000 })
  const lease = leases.hold(run, leases.nowMs(), { onLost() {}, onCancel() {} })
  const isGood = (): boolean => {
    try {
      lease.check()
      return true
    } catch (error) {
      expect(error).toMatchObject({ code: 'lease_lost' })
      return false
    }
  }
  return { isGood, wall, monotonic }
}

describe('a lease', () => {
  test('ends also while the machine sleeps, which its monotonic clock does not count', () => {
    const { isGood, wall, monotonic } = hold()
    wall.ms += 60_000
    monotonic.ms += 60_000
    expect(isGood()).toBe(true)
    wall.ms += 3_600_000
    expect(isGood()).toBe(false)
  })

  test('goes by the monotonic clock, wherever that of the wall is set back to or how it drifts', () => {
    const { isGood, wall, monotonic } = hold()
    wall.ms -= 7_200_000
    expect(isGood()).toBe(true)
    for (let times = 0; times < 5000; times++) {
      wall.ms += 900
      if (!isGood()) throw new Error('a clock that runs fast took a lease')
    }
    monotonic.ms += 0.8 * 3_600_000 + 1
    expect(isGood()).toBe(false)
  })
})
