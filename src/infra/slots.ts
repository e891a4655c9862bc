import { createWaitingLine } from './waiting-line.ts'

/** A fixed number of places to work; whoever finds none free waits in line. A place is given back by `await using`. */
export const createSlots = (count: number) => {
  const line = createWaitingLine<null, AsyncDisposable>()
  const drains: (() => void)[] = []
  let free = count

  const give = (): void => {
    const [next] = line.waiting
    if (next) next.serve(place)
    else free++
    if (free === count) for (const drained of drains.splice(0)) drained()
  }
  const place: AsyncDisposable = { [Symbol.asyncDispose]: async () => give() }

  /** Whoever gives up leaves the line. */
  const take = async (signal?: AbortSignal): Promise<AsyncDisposable> => {
    signal?.throwIfAborted()
    if (free === 0) return line.join(null, signal)
    free--
    return place
  }

  return {
    get free(): number {
      return free
    },
    take,
    /** Like `take`, but null when none came free within `ms` milliseconds. */
    async takeWithin(ms: number): Promise<AsyncDisposable | null> {
      const patience = new AbortController()
      const late = setTimeout(() => patience.abort(), ms)
      try {
        return await take(patience.signal)
      } catch {
        return null
      } finally {
        clearTimeout(late)
      }
    },
    /** Resolves once every place is free. */
    drained: (): Promise<void> =>
      free === count ? Promise.resolve() : new Promise((resolve) => void drains.push(resolve)),
  }
}
