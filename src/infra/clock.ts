import type { Clock } from '../state/ports.ts'

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  // not that of node:timers/promises, which makes an error with a stack for every sleep that is cut short
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const stop = (): void => {
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
