/** One in the line. `serve` ends the wait with what was waited for. */
type Waiter<Who, Turn> = { readonly who: Who; serve(turn: Turn): void }

/** Those who wait for a turn, in the order they came. Who is next is for the one who serves to say. */
export const createWaitingLine = <Who, Turn>() => {
  const waiting = new Set<Waiter<Who, Turn>>()
  return {
    waiting: waiting as ReadonlySet<Waiter<Who, Turn>>,
    /** Resolves when served. Whoever gives up leaves the line, and hears the signal's reason. */
    async join(who: Who, signal?: AbortSignal): Promise<Turn> {
      signal?.throwIfAborted()
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          waiting.delete(waiter)
          signal?.removeEventListener('abort', giveUp)
        }
        const giveUp = (): void => {
          leave()
          reject(signal?.reason)
        }
        const waiter: Waiter<Who, Turn> = {
          who,
          serve(turn) {
            leave()
            resolve(turn)
          },
        }
        signal?.addEventListener('abort', giveUp)
        waiting.add(waiter)
      })
    },
  }
}
