import type { Clock } from '../../state/ports/clock.ts'
import { sleep } from '../../state/sleep.ts'

/** TZ, else that of the machine. Read once: it takes half a millisecond, and stays what it was when the process began. */
const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => new Date(),
  timeZone: () => timeZone,
  monotonicMs: () => performance.now(),
  sleep,
}
