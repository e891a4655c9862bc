import { afterEach, describe, expect, test } from 'vitest'
import { startLeaseRenewal } from '../../../src/engine/runs/leases.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'

/** Renews whatever it is asked to. */
const sql: Sql = {
  query: async <Row>(text: string, [rows]: readonly unknown[] = []) => ({
    rows: (text.includes('UPDATE runs') ? JSON.parse(String(rows)) : []) as Row[],
  }),
}
const run = { tenant: 'b', run_id: 'r', epoch: 1 }
let leases: ReturnType<typeof startLeaseRenewal>
afterEach(() => leases.stop())

const hold = (): { isGood(): boolean; wall: { ms: number }; monotonic: { ms: number } } => {
  const [wall, monotonic] = [{ ms: 1_000_000_000 }, { ms: 5000 }]
  const clock: Clock = {
    now: () => new Date(wall.ms),
    monotonicMs: () => monotonic.ms,
    sleep: async () => {},
  }
  leases = startLeaseRenewal({ sql, clock, log: silentLog, workerId: 'w', leaseMs: 3_600_000 })
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
  test('expires also while the machine sleeps, which its monotonic clock does not count', () => {
    const { isGood, wall, monotonic } = hold()
    wall.ms += 60_000
    monotonic.ms += 60_000
    expect(isGood()).toBe(true)
    wall.ms += 3_600_000
    expect(isGood()).toBe(false)
  })

  test('follows the monotonic clock, however the wall clock is set back or drifts', () => {
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
