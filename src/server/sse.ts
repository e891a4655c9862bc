import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { RunEvent } from '../state/run-view.ts'
import { type OpenReplies, onLeft } from './open-replies.ts'

/** One event as it goes over the wire: `id` only where the event has one, data as one line of JSON. */
const frameOf = (event: RunEvent): string => {
  const id = 'id' in event ? `id: ${event.id}\n` : ''
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`
}

/**
 * Sends events until they end, the client leaves or the server closes; in both of the latter the events' signal
 * aborts. An event is taken only when the one before has gone out, so a client that does not read costs no memory.
 * A failure after the start ends the stream without a word: the client comes back with its Last-Event-ID.
 */
export const streamEvents = async (
  reply: FastifyReply,
  events: (signal: AbortSignal) => AsyncIterable<RunEvent>,
  open: OpenReplies,
  keepAliveMs: number,
): Promise<void> => {
  const raw = startStream(reply)
  raw.flushHeaders()
  const controller = new AbortController()
  const { signal } = controller
  const keepAlive = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(': keep-alive\n\n')
  }, keepAliveMs)
  const stop = () => {
    clearInterval(keepAlive)
    controller.abort()
    // what a stalled client has not read by now it gets when it comes back
    if (raw.writableNeedDrain) raw.destroy()
    else raw.end()
  }
  const forget = open.onClosing(stop, 'stream')
  // who left while the run was looked up has no 'close' to come
  const ignore = onLeft(raw, stop)
  try {
    for await (const event of events(signal)) {
      if (signal.aborted) break
      if (!raw.write(frameOf(event))) await once(raw, 'drain', { signal })
    }
  } catch (error) {
    if (!signal.aborted) reply.log.warn({ err: error }, 'a stream of events broke off')
  } finally {
    forget()
    ignore()
    stop()
  }
}

/** Takes the reply over; its headers go out with the first write, unless they are flushed before. */
export const startStream = (reply: FastifyReply): ServerResponse => {
  reply.hijack()
  reply.raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  // a write that meets a connection just lost; 'close' follows and ends the stream
  reply.raw.on('error', () => undefined)
  return reply.raw
}
