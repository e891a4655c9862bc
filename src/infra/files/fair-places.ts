type Waiting = { business: string; sit(): void }

/**
 * Places that businesses share. One may hold as many as are free besides, so that a single one gets half of them, and
 * there is always one for the next. The turn is whose business holds the fewest, then who came first.
 */
export const createFairPlaces = (count: number) => {
  const held = new Map<string, number>()
  let waiting: Waiting[] = []
  let free = count

  const heldBy = (business: string): number => held.get(business) ?? 0
  const mayTake = (business: string): boolean => heldBy(business) < free

  const fill = (): void => {
    for (;;) {
      const [next] = waiting.toSorted((a, b) => heldBy(a.business) - heldBy(b.business))
      if (!next || !mayTake(next.business)) return
      waiting = waiting.filter((one) => one !== next)
      next.sit()
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
      if (mayTake(business)) return sitDown(business)
      return new Promise((resolve, reject) => {
        const waits: Waiting = {
          business,
          sit() {
            signal.removeEventListener('abort', giveUp)
            resolve(sitDown(business))
          },
        }
        const giveUp = (): void => {
          waiting = waiting.filter((one) => one !== waits)
          reject(signal.reason)
        }
        signal.addEventListener('abort', giveUp, { once: true })
        waiting.push(waits)
      })
    },
  }
}
