import { groupBy } from './group-by.ts'

/** A semaphore of `count` permits, in order of arrival. `await using` releases a permit. */
export const createPermits = (count: number) => {
  const queue = createWaitQueue<null, AsyncDisposable>()
  let free = count

  const release = (): void => {
    const [next] = queue.waiting
    if (next) next.serve(permit)
    else free++
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

/**
 * Permits that businesses share. A business may hold `share` times as many as are free besides: with 1, a single one gets
 * half of them and one is always left for the next. It may never hold more than `limitOf` returns for it. First served: the
 * business that holds the fewest, then the one that came first. Own code since no semaphore library has this order and a
 * wait that one caller can abort: see decision 35.
 */
export const createFairPermits = (
  count: number,
  share = 1,
  limitOf: (business: string) => number = () => count,
) => {
  /** The business of each permit that is out. */
  const held: string[] = []
  const queue = createWaitQueue<string, AsyncDisposable>()

  const countHeld = (business: string): number => held.filter((one) => one === business).length
  const isFree = (business: string): boolean =>
    held.length < count && countHeld(business) < Math.min(limitOf(business), share * (count - held.length))

  /** The waiting callers of each business, the one that came first before the others. */
  const groupWaiting = () => groupBy([...queue.waiting], ({ who }) => who)

  const serveWaiting = (): void => {
    for (;;) {
      const next = [...groupWaiting()]
        .sort(([one], [other]) => countHeld(one) - countHeld(other))
        .find(([business]) => isFree(business))
      if (!next) return
      const [business, [first]] = next
      first?.serve(issuePermit(business))
    }
  }

  const issuePermit = (business: string): AsyncDisposable => {
    held.push(business)
    let isOut = true
    return {
      async [Symbol.asyncDispose]() {
        if (!isOut) return
        isOut = false
        held.splice(held.indexOf(business), 1)
        serveWaiting()
      },
    }
  }

  return {
    /** Whether `acquire` would return a permit at once. */
    isFree,
    /** Waits for a permit. Rejects with the signal's reason. */
    async acquire(business: string, signal?: AbortSignal): Promise<AsyncDisposable> {
      signal?.throwIfAborted()
      return isFree(business) ? issuePermit(business) : queue.join(business, signal)
    },
    /** The businesses of which at least so many wait. */
    waiting(atLeast: number): string[] {
      return [...groupWaiting()].filter(([, { length }]) => length >= atLeast).map(([business]) => business)
    },
    isWaiting: (business: string): boolean => [...queue.waiting].some(({ who }) => who === business),
    get held(): number {
      return held.length
    },
  }
}
