import { openDeadline } from '../../state/deadline.ts'
import { FileFault } from './origins/fault.ts'

/**
 * Milliseconds from the beginning of a step: until when files are fetched, until when files are opened, and until when
 * either is done for those that earlier turns tried. All far below what a run may take, so that the step is laid and its
 * tries count.
 */
export type Budget = { fetch: number; open: number; again: number }
const usual: Budget = { fetch: 120_000, open: 300_000, again: 15_000 }

export const openBudget = (signal: AbortSignal, ms: Budget = usual) => {
  const until = {
    fetch: openDeadline(ms.fetch, signal),
    open: openDeadline(ms.open, signal),
    again: openDeadline(ms.again, signal),
  }
  return {
    /** Rejects with a passing FileFault when there is no time, or no more of it. */
    async within<Result>(what: keyof Budget, work: (until: AbortSignal) => Promise<Result>): Promise<Result> {
      const time = until[what].signal
      try {
        time.throwIfAborted()
        return await work(time)
      } catch (error) {
        signal.throwIfAborted()
        if (!time.aborted || error instanceof FileFault) throw error
        throw new FileFault('there was no time for it in this turn', { passing: true })
      }
    },
    [Symbol.dispose]() {
      for (const one of Object.values(until)) one[Symbol.dispose]()
    },
  }
}

export type OpenBudget = ReturnType<typeof openBudget>
