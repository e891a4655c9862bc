import type { OriginFile } from '../../state/runtime-state.ts'
import { createSlots } from '../slots.ts'
import { createFairPlaces } from './fair-places.ts'
import { whence } from './origins/open.ts'

/** Files that are fetched, and files out of the database: each counted from its first byte until it is off the disk. */
const mostAtOnce = 16
/** Files that are whole in the heap on their way into the database or out of it. */
const mostInHeap = 2

/**
 * How much disk and memory the files of all runs of this process take at once; but for what a tool reads whole (at most 64
 * MB each): that waits for no place out of the database, and is in no place of the heap once it is read.
 */
export const createRoom = () => {
  // places apart, so that a slow server holds up nothing that has its bytes here
  const fetched = createFairPlaces(mostAtOnce)
  const stored = createFairPlaces(mostAtOnce)

  return {
    heap: createSlots(mostInHeap),
    /**
     * Room for all these files together; null: they take none. `rest` is called before what may take long: whoever waits
     * here must not keep a process from those who have their files.
     */
    async enter(
      business: string,
      files: readonly Readonly<OriginFile>[],
      rest: () => void,
      signal: AbortSignal,
    ): Promise<AsyncDisposable | null> {
      const from = new Set(files.map(whence))
      if (!from.has('elsewhere') && !from.has('database')) return null
      const places = from.has('elsewhere') ? fetched : stored
      if (places === fetched || !places.mayTake(business)) rest()
      return places.take(business, signal)
    },
  }
}
