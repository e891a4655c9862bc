import type { Body } from '../../egress/port.ts'
import type { Exchange } from './exchange.ts'
import { faultOfConnection, faultOfReply } from './faults.ts'
import { type Piece, type SplitOptions, type Splitter, splitterFor } from './split.ts'
import { excerpt } from './upstream.ts'

export type Receiving = SplitOptions & {
  /** Of the whole body, after decompression. */
  maxBytes: number
  /** The event that ends the stream. */
  done: string | null
  /** Gets what comes, in order; what it throws ends the receiving. */
  take(piece: Piece): void
}

/** The next bytes of the body, counted and timed; null at its end. Throws what `exchange.fail` returns. */
const createCount = (body: Body, exchange: Exchange, maxBytes: number) => {
  let count = 0
  return async (): Promise<Uint8Array | null> => {
    const bytes = await body.read().catch((error: unknown) => {
      throw exchange.fail(faultOfConnection(error, 'body'))
    })
    if (bytes === null) return null
    exchange.heard()
    count += bytes.byteLength
    if (count > maxBytes) throw exchange.fail(faultOfReply(`sent more than ${maxBytes} bytes`, false))
    return bytes
  }
}

const shownHead = 1000

const takeBody = async (body: Body, receiving: Receiving): Promise<void> => {
  const { exchange, maxBytes, done, take } = receiving
  const next = createCount(body, exchange, maxBytes)
  const decoder = new TextDecoder()
  let splitter: Splitter | null = null
  let head = ''
  let found = 0

  /** Whether the answer is over. */
  const isEnd = (text: string): boolean => {
    found += 1
    if (done === null || text.trim() !== done) return false
    exchange.end()
    return true
  }
  const feed = (text: string): boolean => {
    const fresh = splitter === null ? `${head}${text}`.trimStart() : text
    if (head.length < shownHead) head = splitter === null ? fresh : `${head}${text.slice(0, shownHead)}`
    if (fresh === '') return false
    splitter ??= splitterFor(fresh, receiving)
    for (const event of splitter.feed(fresh)) {
      if (exchange.signal.aborted || isEnd(event)) return true
      take({ kind: 'event', text: event })
    }
    return false
  }
  for (let bytes = await next(); bytes !== null; bytes = await next())
    if (feed(decoder.decode(bytes, { stream: true }))) return
  if (feed(decoder.decode())) return
  for (const last of (splitter as Splitter | null)?.last() ?? []) {
    if (exchange.signal.aborted || isEnd(last.text)) return
    take(last)
  }
  if (found > 0) return
  const wanted = receiving.expects === 'whole' ? 'not JSON' : 'neither events nor JSON'
  const what = head === '' ? 'an empty reply' : `what is ${wanted}: ${excerpt(head)}`
  throw exchange.fail(faultOfReply(`sent ${what}`))
}

/** Takes a body apart, up to the event that ends the stream: events, or the one JSON body. */
export const receive = async (body: Body, receiving: Receiving): Promise<void> => {
  try {
    await takeBody(body, receiving)
  } finally {
    body.cancel()
  }
}
