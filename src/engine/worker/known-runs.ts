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
  const held = new Set<string>()
  const suspects = new Set<string>()
  const counts = new Map<string, number>()
  const ended = new Set<string>()
  const toKey = ({ tenant, run_id }: RunKey): string => `${tenant}/${run_id}`
  const count = (tenant: string, by: number): void => {
    const now = (counts.get(tenant) ?? 0) + by
    if (now === 0) counts.delete(tenant)
    else counts.set(tenant, now)
  }
  const hasShare = (runs: number): boolean => runs + 1 > shareOfFree * (maxRuns - held.size - 1)
  const listBusinesses = (meets: (runs: number) => boolean): string[] =>
    [...counts].filter(([, runs]) => meets(runs)).map(([tenant]) => tenant)
  return {
    has: (run: RunKey): boolean => held.has(toKey(run)) || ended.has(toKey(run)),
    take(run: Pick<RunClaim, keyof RunKey | 'stalls'>): void {
      held.add(toKey(run))
      if (run.stalls > suspectStalls) suspects.add(toKey(run))
      count(run.tenant, 1)
    },
    release(run: RunKey, hasEnded: boolean): void {
      held.delete(toKey(run))
      suspects.delete(toKey(run))
      count(run.tenant, -1)
      if (!hasEnded) return
      const [oldest] = ended.add(toKey(run))
      if (ended.size > maxEndedRuns && oldest) ended.delete(oldest)
    },
    /** Suspects a run no longer that has committed an action. True: it was suspected. */
    trust: (run: RunKey): boolean => suspects.delete(toKey(run)),
    get held(): number {
      return held.size
    },
    /** Whether another run may be claimed; `tenant`: one of this business. The only run is never refused. */
    mayTake(tenant?: string): boolean {
      if (held.size === 0) return true
      const runs = tenant === undefined ? 0 : (counts.get(tenant) ?? 0)
      return held.size < maxRuns && (runs === 0 || !hasShare(runs)) && readHeap() < maxHeapShare
    },
    /** A business that has its share is passed over; one that has half is served where no other is due. */
    claimOrder: () => ({
      excluded: listBusinesses(hasShare),
      last: listBusinesses((runs) => runs * 2 >= maxRuns),
      takesSuspects: suspects.size === 0,
    }),
  }
}
