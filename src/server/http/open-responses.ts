import type { ServerResponse } from 'node:http'

/** The responses in progress, so that closing can end the long ones at once and let the short ones finish. */
export type OpenResponses = {
  readonly closing: boolean
  /** Streams of events open now. */
  readonly streams: number
  /** Counts a response until it has ended. */
  track(response: ServerResponse): void
  /** Calls `stop` when the server closes; returns a function that cancels this. `stream` counts it among the streams. */
  onClosing(stop: () => void, kind: 'wait' | 'stream'): () => void
  /** Aborts when the client disconnects or the server closes. Call `release` when the work is done. */
  abortSignal(response: ServerResponse): { signal: AbortSignal; release: () => void }
  /** Ends streams and waits; resolves when all responses have ended, after `timeoutMs` at the latest. */
  close(timeoutMs: number): Promise<void>
}

/** Calls `stop` once the client has disconnected, at once when it did before; returns a function that cancels this. */
export const onDisconnect = (response: ServerResponse, stop: () => void): (() => void) => {
  if (response.closed) stop()
  response.once('close', stop)
  return () => response.off('close', stop)
}

/** An empty set of responses, open until `close`. */
export const createOpenResponses = (): OpenResponses => {
  const responses = new Set<ServerResponse>()
  const stops = new Map<() => void, 'wait' | 'stream'>()
  let closing = false
  let onEmpty = (): void => undefined

  const onClosing: OpenResponses['onClosing'] = (stop, kind) => {
    if (closing) stop()
    else stops.set(stop, kind)
    return () => stops.delete(stop)
  }

  return {
    get closing() {
      return closing
    },
    get streams() {
      return [...stops.values()].filter((kind) => kind === 'stream').length
    },
    track(response) {
      responses.add(response)
      const end = () => {
        responses.delete(response)
        if (responses.size === 0) onEmpty()
      }
      response.once('finish', end).once('close', end)
    },
    onClosing,
    abortSignal(response) {
      const controller = new AbortController()
      const stop = () => controller.abort()
      const cancelClosing = onClosing(stop, 'wait')
      const cancelDisconnect = onDisconnect(response, stop)
      const release = () => {
        cancelClosing()
        cancelDisconnect()
      }
      return { signal: controller.signal, release }
    },
    async close(timeoutMs) {
      closing = true
      for (const stop of stops.keys()) stop()
      stops.clear()
      if (responses.size === 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs)
        onEmpty = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}
