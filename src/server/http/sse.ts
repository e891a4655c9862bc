import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { RunEvent } from '../../state/run-view.ts'
import { type OpenResponses, onDisconnect } from './open-responses.ts'

/** One event as it is sent: `id` only where the event has one, data as one line of JSON. */
const formatEvent = (event: RunEvent): string => {
  const id = 'id' in event ? `id: ${event.id}\n` : ''
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`
}

/**
 * Sends events until they end, the client disconnects or the server closes; in both of the latter the events' signal
 * aborts. An event is read only after the one before was sent, so a client that does not read costs no memory. An error
 * after the start ends the stream without an event: the client reconnects with its Last-Event-ID.
 */
export const sendEvents = (
  reply: FastifyReply,
  events: (signal: AbortSignal) => AsyncIterable<RunEvent>,
  open: OpenResponses,
  keepAliveMs: number,
): Promise<void> => sendTexts(reply, (signal) => mapEvents(events(signal)), open, keepAliveMs)

async function* mapEvents(events: AsyncIterable<RunEvent>): AsyncGenerator<string> {
  for await (const event of events) yield formatEvent(event)
}

/** As `sendEvents`, of events that are formatted already. */
export const sendTexts = async (
  reply: FastifyReply,
  events: (signal: AbortSignal) => AsyncIterable<string>,
  open: OpenResponses,
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
    // a stalled client gets the rest when it reconnects
    if (raw.writableNeedDrain) raw.destroy()
    else raw.end()
  }
  const cancelClosing = open.onClosing(stop, 'stream')
  // a client that disconnected before this line emits no more 'close'
  const cancelDisconnect = onDisconnect(raw, stop)
  try {
    for await (const event of events(signal)) {
      if (signal.aborted) break
      if (!raw.write(event)) await once(raw, 'drain', { signal })
    }
  } catch (error) {
    if (!signal.aborted) reply.log.warn({ err: error }, 'a stream of events broke off')
  } finally {
    cancelClosing()
    cancelDisconnect()
    stop()
  }
}

/** Takes over the reply for a stream of events; headers are sent with the first write, unless they are flushed before. */
export const startStream = (reply: FastifyReply): ServerResponse => {
  reply.hijack()
  reply.raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  // a write to a lost connection; 'close' follows and ends the stream
  reply.raw.on('error', () => undefined)
  return reply.raw
}
