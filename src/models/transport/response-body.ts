import type { EgressBody } from '../../infra/egress/egress-port.ts'
import type { ExchangeControl } from './exchange-control.ts'
import { createBadReplyError, createConnectionError } from './provider-errors.ts'
import {
  createResponseSplitter,
  type ResponseChunk,
  type ResponseSplitOptions,
  type ResponseSplitter,
} from './response-splitter.ts'
import { excerpt } from './upstream-error.ts'

/** How a body is received. */
export type ReceiveOptions = ResponseSplitOptions & {
  /** Of the whole body, after decompression. */
  maxBytes: number
  /** The event that ends the stream. */
  done: string | null
  /** Gets the chunks in order; an error that it throws ends the receiving. */
  take(chunk: ResponseChunk): void
}

/** Reads the next bytes of the body, counted and timed; null at its end. Throws what `exchange.fail` returns. */
const createByteCounter = (body: EgressBody, exchange: ExchangeControl, maxBytes: number) => {
  let count = 0
  return async (): Promise<Uint8Array | null> => {
    const bytes = await body.read().catch((error: unknown) => {
      throw exchange.fail(createConnectionError(error, 'body'))
    })
    if (bytes === null) return null
    exchange.bytesReceived()
    count += bytes.byteLength
    if (count > maxBytes) throw exchange.fail(createBadReplyError(`sent more than ${maxBytes} bytes`, false))
    return bytes
  }
}

const maxHeadLength = 1000

const readBody = async (body: EgressBody, receiving: ReceiveOptions): Promise<void> => {
  const { exchange, maxBytes, done, take } = receiving
  const next = createByteCounter(body, exchange, maxBytes)
  const decoder = new TextDecoder()
  let splitter: ResponseSplitter | null = null
  let head = ''
  let events = 0

  /** Whether an event ends the answer. */
  const isEnd = (text: string): boolean => {
    events += 1
    if (done === null || text.trim() !== done) return false
    exchange.end()
    return true
  }
  const feed = (text: string): boolean => {
    const fresh = splitter === null ? `${head}${text}`.trimStart() : text
    if (head.length < maxHeadLength)
      head = splitter === null ? fresh : `${head}${text.slice(0, maxHeadLength)}`
    if (fresh === '') return false
    splitter ??= createResponseSplitter(fresh, receiving)
    for (const event of splitter.feed(fresh)) {
      if (exchange.signal.aborted || isEnd(event)) return true
      take({ kind: 'event', text: event })
    }
    return false
  }
  for (let bytes = await next(); bytes !== null; bytes = await next())
    if (feed(decoder.decode(bytes, { stream: true }))) return
  if (feed(decoder.decode())) return
  for (const last of (splitter as ResponseSplitter | null)?.last() ?? []) {
    if (exchange.signal.aborted || isEnd(last.text)) return
    take(last)
  }
  if (events > 0) return
  const format = receiving.expects === 'whole' ? 'not JSON' : 'neither events nor JSON'
  const what = head === '' ? 'an empty reply' : `what is ${format}: ${excerpt(head)}`
  throw exchange.fail(createBadReplyError(`sent ${what}`))
}

/** Splits a body into its events, up to the one that ends the stream, or takes its one JSON value. */
export const receiveBody = async (body: EgressBody, receiving: ReceiveOptions): Promise<void> => {
  try {
    await readBody(body, receiving)
  } finally {
    body.cancel()
  }
}
