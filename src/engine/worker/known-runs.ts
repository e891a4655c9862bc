import { getHeapStatistics } from 'node:v8'
import type { RunKey } from '../../infra/database/database.ts'
import { type RunClaim, suspectStalls } from '../runs/claim.ts'

const maxEndedRuns = 1000
/** A business may hold so many times the runs that are free besides: alone four fifths of all. */
const shareOfFree = 4
const maxHeapShare = 0.8

const readHeapShare = (): number => {
  const { used_heap_size, heap_size_limit } = getHeapStatistics()
  return used_heap_size / heap_size_limit
}

/**
 * The runs that a worker has, at work and waiting, at most `maxRuns`, fewer while the heap is full, and one of those that may end a
 * process, and all its runs with it; and the last of those that ended here, which never run again.
 */
export const createKnownRuns = (maxRuns: number, readHeap = readHeapShare) => {
  /** Claims by run: one whose lease was lost may still be at work here when the run is claimed again. */
  const held = new Map<string, number>()
  const suspects = new Set<string>()
  const counts = new Map<string, number>()
  let size = 0
  const ended = new Set<string>()
  const toKey = ({ tenant, run_id }: RunKey): string => `${tenant}/${run_id}`
  const count = (claims: Map<string, number>, key: string, by: number): void => {
    const now = (claims.get(key) ?? 0) + by
    if (now === 0) claims.delete(key)
    else claims.set(key, now)
  }
  const change = (run: RunKey, by: number): void => {
    size += by
    count(held, toKey(run), by)
    count(counts, run.tenant, by)
  }
  const hasShare = (runs: number): boolean => runs + 1 > shareOfFree * (maxRuns - size - 1)
  const listBusinesses = (meets: (runs: number) => boolean): string[] =>
    [...counts].filter(([, runs]) => meets(runs)).map(([tenant]) => tenant)
  return {
    has: (run: RunKey): boolean => held.has(toKey(run)) || ended.has(toKey(run)),
    take(run: Pick<RunClaim, keyof RunKey | 'stalls'>): void {
      if (run.stalls > suspectStalls) suspects.add(toKey(run))
      change(run, 1)
    },
    release(run: RunKey, hasEnded: boolean): void {
      change(run, -1)
      if (!held.has(toKey(run))) suspects.delete(toKey(run))
      if (!hasEnded) return
      const [oldest] = ended.add(toKey(run))
      if (ended.size > maxEndedRuns && oldest) ended.delete(oldest)
    },
    /** Suspects a run no longer that has committed an action. True: it was suspected. */
    trust: (run: RunKey): boolean => suspects.delete(toKey(run)),
    get held(): number {
      return size
    },
    /** Whether another run may be claimed; `tenant`: one of this business. The only run is never refused. */
    mayTake(tenant?: string): boolean {
      if (size === 0) return true
      const runs = tenant === undefined ? 0 : (counts.get(tenant) ?? 0)
      return size < maxRuns && (runs === 0 || !hasShare(runs)) && readHeap() < maxHeapShare
    },
    /** A business that has its share is passed over; one that has half is served where no other is due. */
    claimOrder: () => ({
      excluded: listBusinesses(hasShare),
      last: listBusinesses((runs) => runs * 2 >= maxRuns),
      takesSuspects: suspects.size === 0,
    }),
  }
}
