import type { RunEvent } from '../state/run-view.ts'
import { ClientError, isTransient } from './client-error.ts'
import { formatSseMessage } from './sse.ts'

const keepAliveMs = 15_000

/** The last event that a browser has: it reconnects with `Last-Event-ID`; `?after=` is for its first request. */
export const readLastEventId = (request: Request): number => {
  const text = request.headers.get('last-event-id') ?? new URL(request.url).searchParams.get('after')
  const id = Number(text ?? 0)
  return Number.isSafeInteger(id) && id > 0 ? id : 0
}

/**
 * Events as the response to a browser's EventSource, with their ids and a comment every 15 s. Ends with `events`. The status is sent
 * before the server is asked: what it refuses for good is an event `error` with its problem document.
 */
export const toEventResponse = (events: AsyncIterable<RunEvent>, stop: () => void): Response => {
  const encoder = new TextEncoder()
  const iterator = events[Symbol.asyncIterator]()
  const toBytes = (event: string, data: unknown, id: string | null = null): Uint8Array<ArrayBuffer> =>
    encoder.encode(formatSseMessage({ event, id, data: JSON.stringify(data) }))
  let timer: ReturnType<typeof setInterval> | undefined
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      timer = setInterval(() => {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': keep-alive\n\n'))
      }, keepAliveMs)
    },
    // an event is read when the browser has taken the one before
    async pull(controller) {
      try {
        const next = await iterator.next()
        if (!next.done) {
          const { event, data } = next.value
          const id = 'id' in next.value ? String(next.value.id) : null
          return controller.enqueue(toBytes(event, data, id))
        }
      } catch (error) {
        // after what may pass, the browser reconnects with the last id that it has
        if (!isTransient(error) && error instanceof ClientError)
          controller.enqueue(toBytes('error', error.problem ?? { code: error.code, detail: error.message }))
      }
      clearInterval(timer)
      controller.close()
    },
    cancel() {
      clearInterval(timer)
      stop()
    },
  })
  return new Response(body, {
    headers: {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    },
  })
}
