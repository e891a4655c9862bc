/** A semaphore of `count` permits, in order of arrival. `await using` releases a permit. */
export const createPermits = (count: number) => {
  const queue = createWaitQueue<null, AsyncDisposable>()
  const drains: (() => void)[] = []
  let free = count

  const release = (): void => {
    const [next] = queue.waiting
    if (next) next.serve(permit)
    else free++
    if (free === count) for (const drained of drains.splice(0)) drained()
  }
  const permit: AsyncDisposable = { [Symbol.asyncDispose]: async () => release() }

  /** Waits for a permit. A caller whose signal aborts leaves the queue. */
  const take = async (signal?: AbortSignal): Promise<AsyncDisposable> => {
    signal?.throwIfAborted()
    if (free === 0) return queue.join(null, signal)
    free--
    return permit
  }

  return {
    get free(): number {
      return free
    },
    take,
    /** Like `take`, but null when no permit is free within `ms` milliseconds. */
    async takeWithin(ms: number): Promise<AsyncDisposable | null> {
      const deadline = new AbortController()
      const timer = setTimeout(() => deadline.abort(), ms)
      try {
        return await take(deadline.signal)
      } catch {
        return null
      } finally {
        clearTimeout(timer)
      }
    },
    /** Resolves once all permits are free. */
    drained: (): Promise<void> =>
      free === count ? Promise.resolve() : new Promise((resolve) => void drains.push(resolve)),
  }
}

/** A waiting caller. `serve` ends the wait with its result. */
type Waiter<Who, Turn> = { readonly who: Who; serve(turn: Turn): void }

/** Waiting callers in order of arrival. The server chooses which of them is next (decision 35). */
export const createWaitQueue = <Who, Turn>() => {
  const waiting = new Set<Waiter<Who, Turn>>()
  return {
    waiting: waiting as ReadonlySet<Waiter<Who, Turn>>,
    /** Resolves when served. An aborted caller leaves the queue and gets the signal's reason. */
    async join(requester: Who, signal?: AbortSignal): Promise<Turn> {
      signal?.throwIfAborted()
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          waiting.delete(waiter)
          signal?.removeEventListener('abort', abort)
        }
        const abort = (): void => {
          leave()
          reject(signal?.reason)
        }
        const waiter: Waiter<Who, Turn> = {
          who: requester,
          serve(turn) {
            leave()
            resolve(turn)
          },
        }
        signal?.addEventListener('abort', abort)
        waiting.add(waiter)
      })
    },
  }
}
