import type { Egress, EgressBody, EgressResponse } from '../../infra/egress/egress-port.ts'
import type { Clock } from '../../state/ports/clock.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { nextTurn } from '../../state/text/next-turn.ts'
import { type ExchangeControl, openExchangeControl, type RequestTimeouts } from './exchange-control.ts'
import type { JsonParser } from './json-parser.ts'
import {
  createBadReplyError,
  createConnectionError,
  createStatusError,
  maxErrorLength,
  truncatedError,
} from './provider-errors.ts'
import {
  createResponseSplitter,
  isCutEvent,
  isEndMark,
  type ResponseChunk,
  type ResponseSplitter,
} from './response-splitter.ts'
import { readHeaderWaits } from './stated-waits.ts'
import { excerpt, readPageWords } from './upstream-error.ts'

/** One HTTP request to a vendor, ready to be sent. */
export type ProviderHttpRequest = {
  url: string
  method: 'POST' | 'PUT' | 'GET'
  headers: Record<string, string>
  body: string | Uint8Array | null
  /** How many redirects are followed; absent: none. */
  maxRedirects?: number
}

/** How requests are sent, and the limits of answers: `maxBytes` after decompression, `maxEvent` in characters. */
export type Transport = {
  egress: Egress
  clock: Clock
  maxBytes: number
  maxEvent: number
  parseJson: JsonParser
}

/** A chunk of an answer with its JSON. */
export type ParsedChunk = ResponseChunk & { value: unknown }

/** One exchange. `done` is the event that ends the stream. */
export type HttpExchangeRequest = {
  request: ProviderHttpRequest
  endpoint: { allow_private: boolean; timeouts: RequestTimeouts }
  endsAtMs: number
  /** `bytes`: a body that is not JSON is taken as the JSON of `{base64, mime_type}`. */
  expects: 'sse' | 'ndjson' | 'whole' | 'bytes'
  done: string | null
  /** Aborted where the answer is over: no more of it is read. */
  over?: AbortSignal | undefined
  /** Called in the moment before the first byte; nothing is sent when it throws. */
  beforeSend?: (() => void) | undefined
  /** Gets the chunks in order; returns whether one had content. An error that it throws ends the exchange. */
  take(chunk: ParsedChunk): boolean
}

/** An exchange under way. Its functions throw what `exchange.fail` returns. */
type OpenExchange = Transport &
  Omit<HttpExchangeRequest, 'take'> & {
    exchange: ExchangeControl
    take(chunk: ResponseChunk): void | Promise<void>
    takeValue(chunk: ParsedChunk): void
  }

const maxErrorMs = 2000

/** Reads an error body for a limited time: a 401 with a stalled body is still a 401. */
const readError = async (body: EgressBody, { exchange, clock, endpoint }: OpenExchange): Promise<string> => {
  exchange.contentReceived(0) // otherwise a late answer with a stalled body would count as no answer
  const decoder = new TextDecoder()
  let text = ''
  const read = async (): Promise<void> => {
    for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
      text += decoder.decode(bytes, { stream: true })
      if (text.length >= maxErrorLength) return
    }
  }
  const over = new AbortController()
  const waitMs = Math.min(maxErrorMs, endpoint.timeouts.idleMs / 2)
  const wait = clock.sleep(waitMs, AbortSignal.any([over.signal, exchange.signal]))
  await Promise.race([read(), wait]).catch(() => {})
  over.abort()
  body.cancel()
  return text.slice(0, maxErrorLength)
}

/** Sends the request and returns a 2xx answer. */
const sendHttpRequest = async (open: OpenExchange): Promise<EgressResponse> => {
  const { egress, clock, exchange, request, endpoint } = open
  const { url, maxRedirects = 0, ...content } = request
  const { allow_private: allowPrivate } = endpoint
  let unsent = true
  const beforeSend = (): void => {
    open.beforeSend?.()
    unsent = false
  }
  const response = await egress
    .request(url, { ...content, signal: exchange.signal, allowPrivate, maxRedirects, beforeSend })
    .catch((error: unknown) => {
      throw exchange.fail({ ...createConnectionError(error, 'headers'), ...(unsent && { unsent }) })
    })
  const { status, headers, body } = response
  if (status >= 200 && status < 300) return response
  const text = await readError(body, open)
  throw exchange.fail(createStatusError(status, text, readHeaderWaits(headers, clock.now())))
}

/** Reads the next bytes of the body, counted and timed; null at its end. */
const createByteCounter = (body: EgressBody, { exchange, maxBytes }: OpenExchange) => {
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
/** `data: ` and the line ends of an event. */
const eventFrameLength = 8
/** What is longer than this is content before it is complete: no keep-alive and no empty delta is. */
const maxEmptyLength = 4096
/** Other work of the process gets a turn after so many milliseconds, and between so many characters. */
const maxTurnMs = 10
const maxFeedLength = 16 * 1024

/** Splits a body into its events, up to the one that ends the stream, or takes its one JSON value. */
const receiveBody = async (body: EgressBody, open: OpenExchange): Promise<void> => {
  const { exchange, done, take } = open
  const next = createByteCounter(body, open)
  const decoder = new TextDecoder()
  let splitter: ResponseSplitter | null = null
  let head = ''
  let events = 0
  /** Characters of the event that is not complete yet. */
  let incomplete = 0

  /** Whether an event ends the answer. */
  const isEnd = (text: string): boolean => {
    events += 1
    if (!isEndMark(text, done)) return false
    exchange.end()
    return true
  }
  let turnEndsAtMs = performance.now() + maxTurnMs
  /** The time that is spent waiting for bytes is no work. */
  const waitForBytes = async (): Promise<Uint8Array | null> => {
    const since = performance.now()
    const bytes = await next()
    turnEndsAtMs += performance.now() - since
    return bytes
  }
  /** A vendor that sends faster than its answer is read must not keep the process from all else. */
  const giveWay = async (): Promise<void> => {
    await nextTurn()
    turnEndsAtMs = performance.now() + maxTurnMs
  }
  /** Whether the answer is at its end. */
  const feed = async (text: string): Promise<boolean> => {
    const fresh = splitter === null ? `${head}${text}`.trimStart() : text
    if (head.length < maxHeadLength)
      head = splitter === null ? fresh : `${head}${text.slice(0, maxHeadLength)}`
    if (fresh === '') return false
    splitter ??= createResponseSplitter(fresh, open)
    const ready = splitter.feed(fresh)
    incomplete = ready.length > 0 || fresh.startsWith(':') ? 0 : incomplete + fresh.trim().length
    if (incomplete > maxEmptyLength) exchange.contentReceived(fresh.length)
    for (const event of ready) {
      if (performance.now() > turnEndsAtMs) await giveWay()
      if (event.trim() === '') continue
      if (exchange.signal.aborted || isEnd(event)) return true
      const taken = take({ kind: 'event', text: event })
      if (taken) await taken
    }
    return false
  }
  const feedParts = async (text: string): Promise<boolean> => {
    for (let at = 0; at < text.length; at += maxFeedLength) {
      if (performance.now() > turnEndsAtMs) await giveWay()
      if (await feed(text.slice(at, at + maxFeedLength))) return true
    }
    return false
  }
  for (let bytes = await waitForBytes(); bytes !== null; bytes = await waitForBytes())
    if (await feedParts(decoder.decode(bytes, { stream: true }))) return
  if (await feedParts(decoder.decode())) return
  for (const last of (splitter as ResponseSplitter | null)?.last() ?? []) {
    if (exchange.signal.aborted || isEnd(last.text)) return
    if (isCutEvent(last)) throw exchange.fail(truncatedError)
    await take(last)
  }
  if (events > 0) return
  const format = open.expects === 'whole' || open.expects === 'bytes' ? 'not JSON' : 'neither events nor JSON'
  const what = head === '' ? 'an empty reply' : `what is ${format}: ${excerpt(head)}`
  const page = readPageWords(head)
  throw exchange.fail({ ...createBadReplyError(`sent ${what}`), ...(page !== undefined && { page }) })
}

/** Takes a body that is not text as the JSON of `{base64, mime_type}`, so that formats read it like any other. */
const receiveBytes = async (body: EgressBody, mimeType: string, open: OpenExchange): Promise<void> => {
  const next = createByteCounter(body, open)
  const chunks: Uint8Array[] = []
  for (let bytes = await next(); bytes !== null; bytes = await next()) {
    open.exchange.contentReceived(bytes.byteLength)
    chunks.push(bytes)
  }
  const base64 = Buffer.concat(chunks).toString('base64')
  if (base64 === '') throw open.exchange.fail(createBadReplyError('sent an empty reply'))
  const value = { base64, mime_type: mimeType || null }
  const text = JSON.stringify({ ...value, base64: cutText(base64, maxHeadLength) })
  open.takeValue({ kind: 'whole', text, value })
}

/**
 * Runs one HTTP exchange with three timeouts. Resolves with how it ended: its error, what `take` threw, whether the vendor sent the
 * closing event, and whether `over` ended it. Rejects only when the caller aborts, with the signal's reason.
 */
export const runHttpExchange = async (
  transport: Transport,
  exchangeRequest: HttpExchangeRequest,
  signal: AbortSignal,
) => {
  const { endpoint, endsAtMs, over } = exchangeRequest
  const exchange = openExchangeControl(
    { clock: transport.clock, clocks: endpoint.timeouts, endsAtMs, over },
    signal,
  )
  let thrown: unknown
  const orThrown = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (error) {
      thrown = error
      throw error
    }
  }
  const takeValue = (chunk: ParsedChunk): void => {
    if (orThrown(() => exchangeRequest.take(chunk)))
      exchange.contentReceived(chunk.text.length + eventFrameLength)
  }
  const take = (chunk: ResponseChunk): void | Promise<void> => {
    const value = orThrown(() => transport.parseJson(chunk.text, exchange.signal))
    if (!(value instanceof Promise)) return takeValue({ ...chunk, value })
    const failed = (error: unknown): never => {
      if (exchange.signal.aborted) throw error
      return orThrown(() => {
        throw error
      })
    }
    return value.catch(failed).then((parsed: unknown) => takeValue({ ...chunk, value: parsed }))
  }
  const sendAndReceive = async (): Promise<void> => {
    const open = { ...transport, ...exchangeRequest, exchange, take, takeValue }
    const { body, headers } = await sendHttpRequest(open)
    const mimeType = headers.get('content-type')?.split(';')[0]?.trim() ?? ''
    try {
      if (open.expects === 'bytes' && !/[/+]json$/.test(mimeType)) await receiveBytes(body, mimeType, open)
      else await receiveBody(body, open)
    } finally {
      body.cancel()
    }
  }
  try {
    await Promise.race([sendAndReceive(), exchange.stopped])
  } catch (error) {
    // an error that the exchange did not report is a bug of ours, not an error of the vendor
    const isKnown = thrown !== undefined || exchange.error() !== undefined || exchange.wasCut()
    if (!isKnown && !signal.aborted) throw error
  } finally {
    exchange.close()
  }
  signal.throwIfAborted()
  return { error: exchange.error(), thrown, ended: exchange.ended(), cut: exchange.wasCut() }
}
