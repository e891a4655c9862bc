import { setTimeout as pause } from 'node:timers/promises'

/** Tries again every 100 ms while it fails with such an error: what is asked may be down. The work must be idempotent. */
export const createRetry =
  (passing: RegExp) =>
  async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    for (;;)
      try {
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        if (!passing.test(String(error))) throw error
        await pause(100, undefined, { signal })
      }
  }
