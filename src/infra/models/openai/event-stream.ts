import { createParser } from 'eventsource-parser'
import type { Clock } from '../../../state/ports.ts'
import type { Exchange } from './exchange.ts'
import { faultOfConnection, faultOfReply } from './faults.ts'
import { excerpt } from './upstream.ts'

type Options = { exchange: Exchange; clock: Clock; maxBytes: number }
type Reader = ReadableStreamDefaultReader<Uint8Array>

/** How long a server may take to close after `[DONE]` before its connection is given up. */
const closingMs = 25

const encoder = new TextEncoder()
/** One event as one chunk: the SDK's own reader takes quadratic time when a line comes in pieces. */
const frame = (data: string): Uint8Array => encoder.encode(`data: ${data.replace(/[\r\n]+/g, ' ')}\n\n`)

/** Decoded text of the body, counted and timed. Throws what `exchange.fail` returns. */
async function* texts(reader: Reader, { exchange, maxBytes }: Options): AsyncGenerator<string> {
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

/** Events of an SSE body up to `[DONE]`, or the one JSON body that a server sent in its place. */
async function* frames(reader: Reader, options: Options): AsyncGenerator<Uint8Array> {
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
  for await (const text of texts(reader, options)) {
    take(text)
    for (const data of ready.splice(0)) {
      events += 1
      yield frame(data)
      if (!data.startsWith('[DONE]')) continue
      options.exchange.end()
      return await waitForEnd(reader, options)
    }
  }
  if (json !== undefined) return yield frame(json.join(''))
  parser.feed('\n\n') // the last event, when the empty line after it is missing
  for (const data of ready.splice(0)) {
    events += 1
    if (data.startsWith('[DONE]')) options.exchange.end()
    yield frame(data)
  }
  if (events > 0) return
  const what = head === '' ? 'an empty reply' : `what is neither events nor JSON: ${excerpt(head)}`
  throw options.exchange.fail(faultOfReply(`sent ${what}`))
}

/** The body as clean SSE: whole events, one per chunk, capped, timed, and ended at `[DONE]`. */
export const toEventStream = (
  body: ReadableStream<Uint8Array>,
  options: Options,
): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  const source = frames(reader, options)
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = await source.next()
        if (!done) return controller.enqueue(value)
        controller.close()
        reader.cancel().catch(() => {})
      },
      cancel: async (reason) => {
        await reader.cancel(reason).catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}
