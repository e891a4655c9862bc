import { setTimeout as pause } from 'node:timers/promises'
import { seededShare } from '../seeded-choice.ts'
import type { Plan } from './plan.ts'
import type { Member } from './processes.ts'
import type { Progress } from './progress.ts'
import type { Witness } from './witness.ts'
import { leaseMs, type World } from './world.ts'

/** What becomes of one worker process after it is ready. */
export type Fate = {
  /** Actions it may append first, and how long it may go on then. */
  actions: number
  afterMs: number
  /** Whether it is frozen, and for how long: longer than its lease; then it may go on for a while. */
  freezes: boolean
  frozenMs: number
  thenMs: number
  skewSeconds: number
}

/** Places of workers; the last one's wall clock is wrong. */
const places = 3

/** One that finds nothing to do is killed after this. */
const idleMs = 3000

/** The fate of the nth process in a place: the same for a seed, whatever else happens. */
export const fateOf = (seed: number, place: number, nth: number, stopShare: number): Fate => {
  const thrown = (what: string): number => seededShare(seed, 'fate', place, nth, what)
  return {
    actions: thrown('early') < 0.05 ? 0 : 1 + Math.floor(thrown('actions') * 30),
    afterMs: 30 * thrown('after'),
    freezes: thrown('frozen') < stopShare,
    frozenMs: leaseMs * (1.1 + 0.6 * thrown('for')),
    thenMs: 300 * thrown('then'),
    skewSeconds: place === places - 1 ? (nth % 2 === 0 ? 45 : -45) : 0,
  }
}

/** Whether some run has lost so many workers without an action that a few more would end it as poison. */
export const isNearPoison = async (witness: Witness): Promise<boolean> => {
  const near = await witness.query(
    `SELECT FROM runs WHERE status IN ('queued', 'running') AND stalls >= 3 LIMIT 1`,
  )
  return near.length > 0
}

/** Starts workers in each place and kills them, one after the other, until the plan has had its kills. */
export const harassWorkers = async (
  world: World,
  witness: Witness,
  plan: Plan,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> => {
  /** A run that loses five workers without one action is given up, and rightly so: such a one is let through first. */
  const spareThoseNearPoison = async (): Promise<void> => {
    while (await isNearPoison(witness)) await pause(100, undefined, { signal })
  }

  /** What is left to be done may leave no choice. */
  const mustFreeze = (): boolean => plan.stops - progress.stops >= plan.kills - progress.kills

  const torment = async (worker: Member, fate: Fate): Promise<void> => {
    await worker.counted('"acted"', fate.actions, idleMs)
    await pause(fate.afterMs, undefined, { signal })
    await spareThoseNearPoison()
    if (progress.stops < plan.stops && (fate.freezes || mustFreeze())) {
      worker.kill('SIGSTOP')
      progress.count('stops')
      await pause(fate.frozenMs, undefined, { signal })
      worker.kill('SIGCONT')
      await pause(fate.thenMs, undefined, { signal })
    }
    await progress.until(({ ended, kills }) => ended >= plan.endedBy(kills), signal)
    await spareThoseNearPoison()
  }

  const live = async (place: number, nth: number): Promise<void> => {
    const fate = fateOf(plan.seed, place, nth, plan.stopShare)
    const worker = world.startWorker({ skewSeconds: plan.canSkew ? fate.skewSeconds : 0 })
    // one that cannot start, as with no database, is killed all the same
    const ready = await Promise.race([
      worker.waitForLine((line) => line.includes('"ready"')),
      pause(15_000, ''),
    ])
    if (ready) await torment(worker, fate)
    worker.kill('SIGKILL')
    const exit = await worker.exited
    if (exit.signal === 'SIGKILL') progress.count('kills')
    else if (ready) throw new Error(`${worker.name} was at work and ended by itself: ${JSON.stringify(exit)}`)
    else progress.count('refusals')
  }
  const fill = async (place: number): Promise<void> => {
    for (let nth = 0; progress.kills < plan.kills; nth++) await live(place, nth)
  }
  await Promise.all(Array.from({ length: places }, (_, place) => fill(place)))
}
