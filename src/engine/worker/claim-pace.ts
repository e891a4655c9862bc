import { performance } from 'node:perf_hooks'

/** How long a business counts as active after its last claim or action. */
const lingerMs = 500
/** How long after a run found no model the next ones are expected to find none. */
const unservedMs = 5000
/** How often the gap follows what the thread does, and the share of its time that the gap aims at. */
const windowMs = 100
const busyShare = 0.6
/** Between two claims for one business. */
const gaps = { minMs: 5, firstMs: 40, maxMs: 160 }

/** The share of the time since the last reading in which the event loop was busy. */
const openBusyReader = (): (() => number) => {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

/**
 * Spaces the claims for a business whose runs no model could serve, while another is at work: each such run comes back again and
 * again, and each claim brings a whole run to the one thread. The gap doubles while the thread is busy and halves while it is not.
 * docs/decisions/0176.
 */
export const createClaimPace = (nowMs: () => number, readBusy = openBusyReader()) => {
  const workedAt = new Map<string, number>()
  const claimedAt = new Map<string, number>()
  const unservedAt = new Map<string, number>()
  let gapMs = gaps.firstMs
  let readAtMs = nowMs()

  const forget = (times: Map<string, number>, afterMs: number): void => {
    for (const [business, at] of times) if (nowMs() - at > afterMs) times.delete(business)
  }
  const adapt = (): void => {
    if (nowMs() - readAtMs < windowMs) return
    readAtMs = nowMs()
    gapMs = Math.min(gaps.maxMs, Math.max(gaps.minMs, readBusy() > busyShare ? gapMs * 2 : gapMs / 2))
  }

  return {
    /** A run of this business has committed an action. */
    worked: (business: string): void => void workedAt.set(business, nowMs()),
    /** A run of this business waits, since no model could serve it. */
    unserved: (business: string): void => void unservedAt.set(business, nowMs()),
    claimed(business: string): void {
      claimedAt.set(business, nowMs())
      workedAt.set(business, nowMs())
    },
    /** The businesses that get no run now, with the milliseconds until they may. */
    listWaits(): Map<string, number> {
      forget(workedAt, lingerMs)
      forget(claimedAt, lingerMs)
      forget(unservedAt, unservedMs)
      adapt()
      if (![...workedAt.keys()].some((business) => !unservedAt.has(business))) return new Map()
      return new Map(
        [...claimedAt].flatMap(([business, at]): [string, number][] => {
          const waitMs = at + gapMs - nowMs()
          return unservedAt.has(business) && waitMs > 0 ? [[business, waitMs]] : []
        }),
      )
    },
  }
}
