import { setTimeout as timer } from 'node:timers/promises'
import type { Clock } from '../../src/state/ports/clock.ts'

/** The real clock, or what `readMs` gives, which a test can set forward: sleeps that are over by then end at once. */
export const createJumpingClock = (
  readMs: () => number = () => performance.now(),
): Clock & { jump(ms: number): void } => {
  let offsetMs = 0
  let jumped = new AbortController()
  const monotonicMs = (): number => readMs() + offsetMs
  return {
    now: () => new Date(Date.now() + offsetMs),
    monotonicMs,
    async sleep(ms, signal) {
      const endsAtMs = monotonicMs() + ms
      for (;;) {
        const leftMs = endsAtMs - monotonicMs()
        if (leftMs <= 0) return
        const any = signal ? AbortSignal.any([signal, jumped.signal]) : jumped.signal
        await timer(leftMs, undefined, { signal: any }).catch(() => {})
        if (signal?.aborted) throw signal.reason
      }
    },
    jump(ms) {
      offsetMs += ms
      jumped.abort()
      jumped = new AbortController()
    },
  }
}
