import type { RunFence } from '../../src/engine/runs/claim.ts'
import { startLeaseRenewal } from '../../src/engine/runs/leases.ts'
import type { Database } from '../../src/infra/database/database.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import type { Log } from '../../src/state/ports/log.ts'
import type { SqlValues } from '../../src/state/ports/sql.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** One heartbeat of a worker for one run; whether the lease was renewed. Its timers are caught and started by hand. */
export const beatOnce = async (database: Database, claim: RunFence): Promise<boolean> => {
  const beats: (() => void)[] = []
  let now = 0
  // each look at it is a long time after the one before, so that nothing counts as under way
  const clock: Clock = { now: () => new Date(), monotonicMs: () => ++now * 1e9, sleep: async () => {} }
  let onAnswer = (): void => {}
  const answered = new Promise<void>((resolve) => {
    onAnswer = resolve
  })
  const sql: Pick<Database, 'query'> = {
    async query<Row>(text: string, values?: SqlValues) {
      if (!text.includes('UPDATE runs')) return { rows: [] }
      try {
        return await database.query<Row>(text, values)
      } finally {
        onAnswer()
      }
    },
  }
  const plain = globalThis.setInterval
  globalThis.setInterval = ((beat: () => void) => {
    beats.push(beat)
    return { unref() {} }
  }) as unknown as typeof setInterval
  const leases = startLeaseRenewal({ sql, clock, log: silent, workerId: 'w', leaseMs: 3_600_000 })
  globalThis.setInterval = plain
  let isLost = false
  leases.hold(claim, now, {
    onLost: () => {
      isLost = true
    },
    onCancel() {},
  })
  beats[0]?.()
  await answered
  // the answer goes through keepLeases before it is known here
  for (let turns = 0; turns < 10; turns++) await Promise.resolve()
  return !isLost
}
