import { createParser } from 'eventsource-parser'
import type { Clock } from '../../../state/ports.ts'
import { AnsweredError } from '../unreadable.ts'
import type { Exchange } from './exchange.ts'
import { faultOfConnection, faultOfReply } from './faults.ts'
import { excerpt } from './upstream.ts'

type Options = { exchange: Exchange; clock: Clock; maxBytes: number }
type Reader = ReadableStreamDefaultReader<Uint8Array>

/** How long a server may take to close after `[DONE]` before its connection is given up. */
const closingMs = 25

/** Decoded text of the body, counted and timed. Throws what `exchange.fail` returns. */
async function* texts(
  reader: Reader,
  { exchange, maxBytes }: Pick<Options, 'exchange' | 'maxBytes'>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw exchange.fail(faultOfConnection(error, 'body'))
    })
    if (done) break
    exchange.heard()
    bytes += value.byteLength
    if (bytes > maxBytes) throw exchange.fail(faultOfReply(`sent more than ${maxBytes} bytes`, false))
    yield decoder.decode(value, { stream: true })
  }
  yield decoder.decode()
}

/** Waits a moment for the end of the body, so that the connection can be used again. */
const waitForEnd = async (reader: Reader, { exchange, clock }: Options): Promise<void> => {
  await Promise.race([reader.read(), clock.sleep(closingMs, exchange.signal)]).catch(() => {})
}

/** Takes one event, its JSON parsed; `whole`: it is the one body of the answer. */
export type TakeChunk = (chunk: unknown, whole: boolean) => void

/** Parses as leniently as the events of servers need. Throws a SyntaxError, or the error that a server put in its answer. */
const parsed = (data: string): unknown => {
  const chunk: unknown = JSON.parse(/[\r\n]/.test(data) ? data.replace(/[\r\n]+/g, ' ') : data)
  if (typeof chunk === 'object' && chunk !== null && 'error' in chunk && chunk.error)
    throw new AnsweredError('/error', 'an error in place of an answer', chunk.error)
  return chunk
}

/** Events of an SSE body up to `[DONE]`, or the one JSON body that a server sent in its place. */
const takeEvents = async (reader: Reader, options: Options, takeChunk: TakeChunk): Promise<void> => {
  const { exchange } = options
  const ready: string[] = []
  const parser = createParser({ onEvent: (event) => void ready.push(event.data) })
  let json: string[] | undefined
  let head = ''
  let events = 0
  const take = (text: string): void => {
    if (head.length < 1000) head = `${head}${text.slice(0, 1000)}`.trimStart()
    // whether it is JSON is seen from its first character: content types lie
    if (json === undefined && events === 0 && head.startsWith('{')) json = []
    if (json === undefined) parser.feed(text)
    else json.push(text)
  }
  /** Whether the answer is over. */
  const takeReady = (): boolean => {
    for (const data of ready.splice(0)) {
      if (exchange.signal.aborted) return true
      events += 1
      if (data.startsWith('[DONE]')) {
        exchange.end()
        return true
      }
      takeChunk(parsed(data), false)
    }
    return false
  }
  for await (const text of texts(reader, options)) {
    take(text)
    if (takeReady()) return exchange.ended() ? waitForEnd(reader, options) : undefined
  }
  if (json !== undefined) return takeChunk(parsed(json.join('')), true)
  parser.feed('\n\n') // the last event, when the empty line after it is missing
  takeReady()
  if (events > 0) return
  const what = head === '' ? 'an empty reply' : `what is neither events nor JSON: ${excerpt(head)}`
  throw exchange.fail(faultOfReply(`sent ${what}`))
}

/**
 * Reads a streamed answer: capped, timed, and ended at `[DONE]`. The SDK's own reader is not used: it hands every event
 * through a chain of generators, and takes quadratic time when a line comes in pieces.
 */
export const readEvents = async (
  body: ReadableStream<Uint8Array>,
  options: Options,
  take: TakeChunk,
): Promise<void> => {
  const reader = body.getReader()
  try {
    await takeEvents(reader, options, take)
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** A body that is one JSON text, under the same clocks and the same cap. */
export const toJsonText = async (
  body: ReadableStream<Uint8Array>,
  options: Pick<Options, 'exchange' | 'maxBytes'>,
): Promise<string> => {
  const parts: string[] = []
  const reader = body.getReader()
  try {
    for await (const text of texts(reader, options)) parts.push(text)
  } finally {
    reader.cancel().catch(() => {})
  }
  const text = parts.join('')
  if (/^\s*[[{]/.test(text)) return text
  const what = text.trim() === '' ? 'an empty reply' : `what is not JSON: ${excerpt(text)}`
  throw options.exchange.fail(faultOfReply(`sent ${what}`))
}
