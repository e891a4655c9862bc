import { createPermits, createWaitQueue } from '../infra/lib/permits.ts'
import type { OriginFile } from '../state/runtime-state.ts'
import { locateBytes } from './origins/file-origin.ts'

/** Files from the network, and files from the database: each counts from its first byte until it is off the disk. */
const maxConcurrentFiles = 16
/** Files that are whole in the heap on their way into the database: texts, and entries of archives. */
const maxFilesInHeap = 2

/**
 * Limits the disk space and the memory that the files of all runs of this process take at once. Not counted: what a tool
 * reads whole out of the database (at most 64 MB each), and what it holds in the heap afterwards.
 */
export const createFileCapacity = () => {
  // separate permits, so that a slow server delays no file whose bytes are in the database
  const network = createFairPermits(maxConcurrentFiles)
  const database = createFairPermits(maxConcurrentFiles)

  return {
    heap: createPermits(maxFilesInHeap),
    /**
     * One permit for all these files together; null: they need none. Calls `onWait` before it may wait long, so that the
     * caller can lend its process to a step whose files are ready.
     */
    async acquire(
      business: string,
      files: readonly Readonly<OriginFile>[],
      onWait: () => void,
      signal: AbortSignal,
    ): Promise<AsyncDisposable | null> {
      const origins = new Set(files.map(locateBytes))
      if (!origins.has('network') && !origins.has('database')) return null
      const permits = origins.has('network') ? network : database
      if (permits === network || !permits.isFree(business)) onWait()
      return permits.acquire(business, signal)
    },
  }
}

/**
 * Permits that businesses share. A business may hold as many as are free besides, so a single one gets half of them and
 * one is always left for the next. First served: the business that holds the fewest, then the one that came first. Own
 * code since no semaphore library has this order and a wait that one caller can abort: see decision record 35.
 */
export const createFairPermits = (count: number) => {
  /** The business of each permit that is out. */
  const held: string[] = []
  const queue = createWaitQueue<string, AsyncDisposable>()

  const countHeld = (business: string): number => held.filter((one) => one === business).length
  const isFree = (business: string): boolean => countHeld(business) < count - held.length

  const serveWaiting = (): void => {
    for (;;) {
      const [next] = [...queue.waiting].sort((a, b) => countHeld(a.who) - countHeld(b.who))
      if (!next || !isFree(next.who)) return
      next.serve(issuePermit(next.who))
    }
  }

  const issuePermit = (business: string): AsyncDisposable => {
    held.push(business)
    return {
      async [Symbol.asyncDispose]() {
        held.splice(held.indexOf(business), 1)
        serveWaiting()
      },
    }
  }

  return {
    /** Whether `acquire` would return a permit at once. */
    isFree,
    /** Waits for a permit. Rejects with the signal's reason. */
    async acquire(business: string, signal: AbortSignal): Promise<AsyncDisposable> {
      signal.throwIfAborted()
      return isFree(business) ? issuePermit(business) : queue.join(business, signal)
    },
  }
}
