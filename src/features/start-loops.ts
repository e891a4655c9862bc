import { repeatWork } from '../infra/lib/repeat-work.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { LoopDefinition, Needed, Needs } from './definitions.ts'

/** A loop with the values of what it needs. */
type Loop = { definition: LoopDefinition; needed: Needed<Needs> }

/** Repeats what these loops do. `stop` ends them in reverse, and waits for all together. */
export const startLoops = (loops: readonly Loop[], clock: Clock, log: Log): { stop(): Promise<void> } => {
  const stops = loops.map(({ definition: { name, everyMs, run, drain }, needed }) => {
    const repeated = repeatWork(() => run(needed), everyMs, clock, log, name)
    return async (): Promise<void> => {
      const lastRun = repeated.stop()
      // one that does not end well keeps no other from ending
      await (drain?.(needed, lastRun) ?? lastRun).catch((error: unknown) =>
        log.warn({ error: String(error) }, `${name}: stopping failed`),
      )
    }
  })
  return { stop: async () => void (await Promise.all(stops.reverse().map((stop) => stop()))) }
}
