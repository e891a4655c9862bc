import { createFairPermits, createPermits } from '../infra/lib/permits.ts'
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
