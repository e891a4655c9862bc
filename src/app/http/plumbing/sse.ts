import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { isMasonError } from '../../../state/errors.ts'
import { type OpenResponses, onDisconnect } from './open-responses.ts'

/** An event of a stream. */
type ServerEvent = { event: string; id?: number | undefined; data: unknown }

/** One event as it is sent: `id` only where the event has one, data as one line of JSON. */
const formatEvent = (event: ServerEvent): string => {
  const id = event.id === undefined ? '' : `id: ${event.id}\n`
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`
}

/**
 * Sends events until they end, the client disconnects or the server closes; in both of the latter the events' signal
 * aborts. An event is read only after the one before was sent, so a client that does not read costs no memory. An error
 * after the start ends the stream without an event: the client reconnects with its Last-Event-ID.
 */
export const sendEvents = (
  reply: FastifyReply,
  events: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
  open: OpenResponses,
  keepAliveMs: number,
): Promise<void> => sendTexts(reply, (signal) => mapEvents(events(signal)), open, keepAliveMs)

async function* mapEvents(events: AsyncIterable<ServerEvent>): AsyncGenerator<string> {
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

/** Contract: what a token may do no more ends within 2 s. A token is cached for 1 s. */
const checkMs = 700

/** Takes over the reply for a stream of events, which ends with the rights of its caller; headers are sent with the first write, unless they are flushed before. */
export const startStream = (reply: FastifyReply): ServerResponse => {
  reply.hijack()
  reply.raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  })
  // a write to a lost connection; 'close' follows and ends the stream
  reply.raw.on('error', () => undefined)
  endWithRights(reply)
  return reply.raw
}

const endWithRights = ({ raw, request }: FastifyReply): void => {
  const { checkAgain } = request
  if (!checkAgain || raw.closed) return
  let isChecking = false
  const check = async (): Promise<void> => {
    if (isChecking) return
    isChecking = true
    try {
      await checkAgain()
    } catch (error) {
      // while the database cannot be asked, nothing is known
      if (!isMasonError(error, 'unauthorized', 'forbidden')) return
      if (raw.writableNeedDrain) raw.destroy()
      else raw.end()
    } finally {
      isChecking = false
    }
  }
  const timer = setInterval(() => void check(), checkMs)
  raw.once('close', () => clearInterval(timer))
}
