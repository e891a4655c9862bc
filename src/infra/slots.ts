/** A fixed number of places to work; whoever finds none free waits in line. */
export const createSlots = (count: number) => {
  const waiting: (() => void)[] = []
  const drains: (() => void)[] = []
  let free = count

  const give = (): void => {
    const next = waiting.shift()
    if (next) next()
    else free++
    if (free === count) for (const drained of drains.splice(0)) drained()
  }

  return {
    get free(): number {
      return free
    },
    /** Resolves with a place, given back by `await using`. */
    async take(): Promise<AsyncDisposable> {
      if (free > 0) free--
      else await new Promise<void>((resolve) => waiting.push(resolve))
      return { [Symbol.asyncDispose]: async () => give() }
    },
    /** Resolves once every place is free. */
    drained: (): Promise<void> =>
      free === count ? Promise.resolve() : new Promise((resolve) => void drains.push(resolve)),
  }
}
