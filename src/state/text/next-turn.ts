// not the one of fake timers, which would never call it once they are gone
const { setImmediate } = globalThis
const waiting: (() => void)[] = []

const serveOne = (): void => {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(serveOne)
}

/**
 * Waits for a turn of the event loop that no other caller has: long pieces of work, each in a turn of its own, do not add
 * up to one that blocks all else. First come, first served.
 * @example
 *   for (const part of parts) { await nextTurn(); read(part) }
 */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(serveOne)
  })
