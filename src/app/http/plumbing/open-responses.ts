import type { ServerResponse } from 'node:http'
import { settlesWithin } from '../../../infra/lib/timeouts.ts'

/** The responses in progress, so that closing can end the long ones at once and let the short ones finish. */
export type OpenResponses = ReturnType<typeof createOpenResponses>

/** Calls `stop` once the client has disconnected, at once when it did before; returns a function that cancels this. */
export const onDisconnect = (response: ServerResponse, stop: () => void): (() => void) => {
  if (response.closed) stop()
  response.once('close', stop)
  return () => response.off('close', stop)
}

/** An empty set of responses, open until `close`. */
export const createOpenResponses = () => {
  const responses = new Set<ServerResponse>()
  const stops = new Map<() => void, 'wait' | 'stream'>()
  let closing = false
  let onEmpty = (): void => undefined

  /** Calls `stop` when the server closes; returns a function that cancels this. `stream` counts it among the streams. */
  const onClosing = (stop: () => void, kind: 'wait' | 'stream'): (() => void) => {
    if (closing) stop()
    else stops.set(stop, kind)
    return () => stops.delete(stop)
  }

  return {
    get closing(): boolean {
      return closing
    },
    /** Streams of events open now. */
    get streams(): number {
      return [...stops.values()].filter((kind) => kind === 'stream').length
    },
    /** Counts a response until it has ended. */
    track(response: ServerResponse): void {
      responses.add(response)
      const end = () => {
        responses.delete(response)
        if (responses.size === 0) onEmpty()
      }
      response.once('finish', end).once('close', end)
    },
    onClosing,
    /** Aborts when the client disconnects or the server closes. Call `release` when the work is done. */
    abortSignal(response: ServerResponse): { signal: AbortSignal; release: () => void } {
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
    /** Ends streams and waits; resolves when all responses have ended, after `timeoutMs` at the latest. */
    async close(timeoutMs: number): Promise<void> {
      closing = true
      for (const stop of stops.keys()) stop()
      stops.clear()
      if (responses.size === 0) return
      const empty = new Promise<void>((resolve) => {
        onEmpty = resolve
      })
      await settlesWithin(empty, timeoutMs)
    },
  }
}
