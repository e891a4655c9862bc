import { createWaitingLine } from '../waiting-line.ts'

/**
 * Places that businesses share. One may hold as many as are free besides, so that a single one gets half of them, and
 * there is always one for the next. The turn is whose business holds the fewest, then who came first.
 */
export const createFairPlaces = (count: number) => {
  const held = new Map<string, number>()
  const line = createWaitingLine<string, AsyncDisposable>()
  let free = count

  const heldBy = (business: string): number => held.get(business) ?? 0
  const mayTake = (business: string): boolean => heldBy(business) < free

  const fill = (): void => {
    for (;;) {
      const [next] = [...line.waiting].toSorted((a, b) => heldBy(a.who) - heldBy(b.who))
      if (!next || !mayTake(next.who)) return
      next.serve(sitDown(next.who))
    }
  }

  const sitDown = (business: string): AsyncDisposable => {
    free -= 1
    held.set(business, heldBy(business) + 1)
    return {
      async [Symbol.asyncDispose]() {
        free += 1
        const left = heldBy(business) - 1
        if (left > 0) held.set(business, left)
        else held.delete(business)
        fill()
      },
    }
  }

  return {
    /** Whether `take` would give a place at once. */
    mayTake,
    /** Whoever gives up leaves the line. */
    async take(business: string, signal: AbortSignal): Promise<AsyncDisposable> {
      signal.throwIfAborted()
      return mayTake(business) ? sitDown(business) : line.join(business, signal)
    },
  }
}
