import type { Clock } from '../../state/ports/clock.ts'

/** TZ, else that of the machine. Read once: it takes half a millisecond, and stays what it was when the process began. */
const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => new Date(),
  timeZone: () => timeZone,
  monotonicMs: () => performance.now(),
  // not from node:timers/promises, which creates an error with a stack for every aborted sleep
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const stop = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop)
        resolve()
      }, ms)
      signal?.addEventListener('abort', stop, { once: true })
    }),
}
