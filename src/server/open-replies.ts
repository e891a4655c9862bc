import type { ServerResponse } from 'node:http'

/** What is still being answered, so that closing can end the long ones at once and let the short ones finish. */
export type OpenReplies = {
  readonly closing: boolean
  /** Streams of events open now. */
  readonly streams: number
  /** Counts a reply until it is over. */
  track(reply: ServerResponse): void
  /** Calls `stop` when the server closes; gives how to take that back. `stream` counts it among the streams. */
  onClosing(stop: () => void, kind: 'wait' | 'stream'): () => void
  /** Aborts when the client leaves or the server closes. */
  signalOf(reply: ServerResponse): { signal: AbortSignal; release: () => void }
  /** Stops what is long; resolves when all replies are over, after `timeoutMs` at the latest. */
  close(timeoutMs: number): Promise<void>
}

/** Calls `stop` once the client has left, at once when it left already; gives how to take that back. */
export const onLeft = (reply: ServerResponse, stop: () => void): (() => void) => {
  if (reply.closed) stop()
  reply.once('close', stop)
  return () => reply.off('close', stop)
}

export const createOpenReplies = (): OpenReplies => {
  const replies = new Set<ServerResponse>()
  const stops = new Map<() => void, 'wait' | 'stream'>()
  let closing = false
  let onEmpty = (): void => undefined

  const onClosing: OpenReplies['onClosing'] = (stop, kind) => {
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
    track(reply) {
      replies.add(reply)
      const over = () => {
        replies.delete(reply)
        if (replies.size === 0) onEmpty()
      }
      reply.once('finish', over).once('close', over)
    },
    onClosing,
    signalOf(reply) {
      const controller = new AbortController()
      const stop = () => controller.abort()
      const forget = onClosing(stop, 'wait')
      const ignore = onLeft(reply, stop)
      const release = () => {
        forget()
        ignore()
      }
      return { signal: controller.signal, release }
    },
    async close(timeoutMs) {
      closing = true
      for (const stop of stops.keys()) stop()
      stops.clear()
      if (replies.size === 0) return
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
