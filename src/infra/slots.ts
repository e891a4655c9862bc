/** A fixed number of places to work; whoever finds none free waits in line. A place is given back by `await using`. */
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
  const place: AsyncDisposable = { [Symbol.asyncDispose]: async () => give() }

  return {
    get free(): number {
      return free
    },
    /** Whoever gives up leaves the line. */
    async take(signal?: AbortSignal): Promise<AsyncDisposable> {
      signal?.throwIfAborted()
      if (free > 0) free--
      else
        await new Promise<void>((resolve, reject) => {
          const taken = (): void => {
            signal?.removeEventListener('abort', leave)
            resolve()
          }
          const leave = (): void => {
            waiting.splice(waiting.indexOf(taken), 1)
            reject(signal?.reason)
          }
          signal?.addEventListener('abort', leave, { once: true })
          waiting.push(taken)
        })
      return place
    },
    /** Like `take`, but null when none came free within `ms` milliseconds. */
    async takeWithin(ms: number): Promise<AsyncDisposable | null> {
      if (free > 0) return this.take()
      return new Promise((resolve) => {
        const taken = () => {
          clearTimeout(late)
          resolve(place)
        }
        const late = setTimeout(() => {
          waiting.splice(waiting.indexOf(taken), 1)
          resolve(null)
        }, ms)
        waiting.push(taken)
      })
    },
    /** Resolves once every place is free. */
    drained: (): Promise<void> =>
      free === count ? Promise.resolve() : new Promise((resolve) => void drains.push(resolve)),
  }
}
