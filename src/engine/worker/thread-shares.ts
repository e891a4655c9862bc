import { performance } from 'node:perf_hooks'

/** How long a business counts as active after its last claim or action. */
const lingerMs = 500
/** How long after a run found no model the next ones are expected to find none. */
const unservedMs = 5000
/** How often the gap follows what the thread does, and the share of its time that the gap aims at. */
const windowMs = 100
const busyShare = 0.6
/** Between two claims for one business: 5 ms, doubled with each level. */
const minGapMs = 5
const levels = { first: 3, max: 5 }

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
 * Shares the one thread among the businesses at work, by a level that rises while the thread is busy and falls while it is not.
 * A business whose runs no model could serve gets its claims spaced: each such run comes back again and again, and each claim brings a
 * whole run. Any business may have fewer visits at once, the higher the level. One alone is never held up. docs/decisions/0220.
 */
export const createThreadShares = (nowMs: () => number, readBusy = openBusyReader()) => {
  const workedAt = new Map<string, number>()
  const claimedAt = new Map<string, number>()
  const unservedAt = new Map<string, number>()
  let level = levels.first
  let readAtMs = nowMs()

  const forget = (times: Map<string, number>, afterMs: number): void => {
    for (const [business, at] of times) if (nowMs() - at > afterMs) times.delete(business)
  }
  const adapt = (): void => {
    if (nowMs() - readAtMs < windowMs) return
    readAtMs = nowMs()
    level = Math.min(levels.max, Math.max(0, level + (readBusy() > busyShare ? 1 : -1)))
  }
  /** The businesses at work whose runs find models. */
  const listServed = (): string[] => {
    forget(workedAt, lingerMs)
    forget(unservedAt, unservedMs)
    adapt()
    return [...workedAt.keys()].filter((business) => !unservedAt.has(business))
  }

  return {
    /** A run of this business has begun a visit or committed an action. */
    worked: (business: string): void => void workedAt.set(business, nowMs()),
    /** A run of this business waits, since no model could serve it. */
    unserved: (business: string): void => void unservedAt.set(business, nowMs()),
    claimed(business: string): void {
      claimedAt.set(business, nowMs())
      workedAt.set(business, nowMs())
    },
    /** The businesses that get no run now, with the milliseconds until they may. */
    listWaits(): Map<string, number> {
      forget(claimedAt, lingerMs)
      if (listServed().length === 0) return new Map()
      return new Map(
        [...claimedAt].flatMap(([business, at]): [string, number][] => {
          const waitMs = at + minGapMs * 2 ** level - nowMs()
          return unservedAt.has(business) && waitMs > 0 ? [[business, waitMs]] : []
        }),
      )
    },
    /** How many of `count` visits may work at once for a business: fewer while another is at work of which none waits for its turn. */
    limitVisits: (business: string, count: number, isWaiting: (other: string) => boolean): number =>
      listServed().some((other) => other !== business && !isWaiting(other))
        ? Math.max(1, count >> level)
        : count,
  }
}

/** See `createThreadShares`. */
export type ThreadShares = ReturnType<typeof createThreadShares>
