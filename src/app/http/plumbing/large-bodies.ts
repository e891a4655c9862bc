import { setTimeout as pause } from 'node:timers/promises'
import { createWaitQueue } from '../../../infra/lib/permits.ts'
import { nextTurn } from '../../../state/text/next-turn.ts'

/** A larger body is read in steps. A smaller one takes a few milliseconds, whatever it has. */
export const largeBytes = 32 * 1024

/** Runs one part of the work on a body. */
export type Step = <Result>(work: () => Result | Promise<Result>) => Promise<Result>

/** At once: for small bodies. */
export const stepAtOnce: Step = async (work) => work()

/**
 * Reads large bodies one at a time, each step in a turn of the event loop of its own, and leaves at least half of the time
 * to all else that the process does. Of those that wait, a body of the caller whose last one is longest ago is next.
 */
export const createLargeBodies = () => {
  const queue = createWaitQueue<string, void>()
  const lastTurns = new Map<string, number>()
  let turns = 0
  let isBusy = false

  const release = (): void => {
    const toTurn = ({ who }: { who: string }): number => lastTurns.get(who) ?? 0
    const [next] = [...queue.waiting].sort((a, b) => toTurn(a) - toTurn(b))
    if (next) next.serve()
    else {
      isBusy = false
      lastTurns.clear()
    }
  }

  return async (caller: string, read: (step: Step) => Promise<void>): Promise<void> => {
    if (isBusy) await queue.join(caller)
    isBusy = true
    lastTurns.set(caller, ++turns)
    let busyMs = 0
    try {
      await read(async (work) => {
        await nextTurn()
        const since = performance.now()
        try {
          return await work()
        } finally {
          busyMs += performance.now() - since
        }
      })
    } finally {
      void pause(busyMs, undefined, { ref: false }).then(release)
    }
    await nextTurn()
  }
}
