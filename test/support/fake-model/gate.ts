import type { ServerResponse } from 'node:http'

/** Where replies wait for a release. */
export type Gate = {
  /** Resolves on a release of this name or of all, and when the client goes away. */
  wait(name: string, response: ServerResponse): Promise<void>
  /** Lets go what waits now; replies that come later wait again. */
  release(name?: string): number
  held(): number
  /** Ends the waiting connections. */
  drop(): void
}

export const createGate = (): Gate => {
  const waiting = new Map<ServerResponse, { name: string; go: () => void }>()
  return {
    wait: (name, response) =>
      new Promise((resolve) => {
        const go = (): void => {
          waiting.delete(response)
          response.off('close', go)
          resolve()
        }
        if (response.destroyed) return resolve()
        waiting.set(response, { name, go })
        response.once('close', go)
      }),
    release: (name) => {
      const chosen = [...waiting.values()].filter((one) => name === undefined || one.name === name)
      for (const one of chosen) one.go()
      return chosen.length
    },
    held: () => waiting.size,
    drop: () => {
      for (const response of [...waiting.keys()]) response.destroy()
    },
  }
}
