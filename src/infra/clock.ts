import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../state/ports.ts'

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, signal) => {
    await sleep(ms, undefined, signal ? { signal } : {}).catch((error: unknown) => {
      throw signal?.aborted ? signal.reason : error
    })
  },
}
