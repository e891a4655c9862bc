import { createParser } from 'eventsource-parser'
import { ApiError, base, request } from './api.ts'

/** One server-sent event; `id` is the position after it, absent where it has none. */
export type StreamEvent = { event: string; id?: number; data: unknown }

type Listener = {
  /** The events that arrived together. */
  onEvents(events: StreamEvent[]): void
  onConnection?(isOpen: boolean): void
  /** The stream has ended for good: the run has ended or was deleted, or this session may not read it. */
  onEnd?(error: ApiError | null): void
}

const pauseMs = [500, 1000, 2000, 5000]
/** A browser has six connections to a server for all of its tabs: so many streams stay open, all others open now and then. */
const permits = 4
const briefMs = 1000

/** Reads with one of the permits that all tabs share, or briefly where none is free. */
const withPermit = async (read: (isBrief: boolean) => Promise<void>): Promise<void> => {
  let isDone = false
  // absent where sign-in is off and the address is neither https nor localhost
  const { locks } = navigator
  for (let at = 0; locks && at < permits && !isDone; at++)
    await locks.request(`mason-stream-${at}`, { ifAvailable: true }, async (lock) => {
      if (!lock) return
      isDone = true
      await read(false)
    })
  if (!isDone) await read(locks !== undefined)
}

/** Does something while the tab is visible. Returns how to end it. */
const whileVisible = (start: () => () => void): (() => void) => {
  let stop = (): void => {}
  const onVisibility = (): void => {
    stop()
    stop = document.hidden ? () => {} : start()
  }
  document.addEventListener('visibilitychange', onVisibility)
  onVisibility()
  return () => {
    document.removeEventListener('visibilitychange', onVisibility)
    stop()
  }
}

/**
 * Follows a stream until its `done`. It reconnects after the last event that it saw; while the tab is hidden there is no
 * connection. Without `after` it begins now. Returns how to end it.
 */
export const follow = (
  path: string,
  business_id: string,
  after: number | undefined,
  listener: Listener,
): (() => void) => {
  let position = after
  let failures = 0
  let isOver = false

  const read = async (signal: AbortSignal, isBrief: boolean): Promise<void> => {
    const headers = {
      accept: 'text/event-stream',
      ...(position !== undefined && { 'last-event-id': String(position) }),
    }
    const response = await request(path, { query: { business_id }, signal }, headers)
    const body = response.body as ReadableStream<Uint8Array<ArrayBuffer>>
    const reader = body.pipeThrough(new TextDecoderStream()).getReader()
    if (isBrief) setTimeout(() => void reader.cancel().catch(() => {}), briefMs)
    listener.onConnection?.(true)
    let events: StreamEvent[] = []
    const parser = createParser({
      onEvent: ({ event = 'message', id, data }) =>
        events.push({ event, data: JSON.parse(data), ...(id !== undefined && { id: Number(id) }) }),
    })
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      events = []
      parser.feed(value)
      if (events.length === 0 || isOver) continue
      failures = 0
      // another order means that the server counts anew
      for (const { id } of events) position = id ?? position
      listener.onEvents(events)
      if (events.some(({ event }) => event === 'done')) return end(null)
    }
    if (!isBrief) listener.onConnection?.(false)
  }

  const end = (error: ApiError | null): void => {
    if (isOver) return
    isOver = true
    stop()
    listener.onEnd?.(error)
  }

  const start = (): (() => void) => {
    const connection = new AbortController()
    const { signal } = connection
    let timer: ReturnType<typeof setTimeout> | undefined
    const connect = async (): Promise<void> => {
      if (isOver || signal.aborted) return
      try {
        await withPermit((isBrief) => read(signal, isBrief))
      } catch (error) {
        const { status } = error instanceof ApiError ? error : { status: 0 }
        if (status >= 400 && status < 500 && status !== 429) return end(error as ApiError)
        if (!signal.aborted) listener.onConnection?.(false)
      }
      timer = setTimeout(() => void connect(), pauseMs[Math.min(failures++, pauseMs.length - 1)])
    }
    void connect()
    return () => {
      connection.abort()
      clearTimeout(timer)
    }
  }
  const stop = whileVisible(start)
  return () => {
    isOver = true
    stop()
  }
}

/**
 * Calls back when runs of the business have changed. One of all tabs has the stream and tells the others; when it is hidden
 * or closed, the next visible one goes on after the last change that it heard of.
 */
export const followChanges = (business_id: string, onChange: () => void): (() => void) => {
  const name = `mason-changes ${base} ${business_id}`
  const channel = new BroadcastChannel(name)
  let position: number | undefined
  const hear = (events: StreamEvent[]): void => {
    for (const { id } of events) position = id ?? position
    onChange()
  }
  channel.onmessage = ({ data }) => {
    if (!document.hidden) hear(data as StreamEvent[])
  }
  const lead = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const stop = follow('/v1/events', business_id, position, {
        onEvents: (events) => {
          channel.postMessage(events)
          hear(events)
        },
        onEnd: () => resolve(),
      })
      signal.addEventListener('abort', () => {
        stop()
        resolve()
      })
    })
  const stop = whileVisible(() => {
    const turn = new AbortController()
    const { signal } = turn
    if (navigator.locks) navigator.locks.request(name, { signal }, () => lead(signal)).catch(() => {})
    else void lead(signal)
    return () => turn.abort()
  })
  return () => {
    stop()
    channel.close()
  }
}
