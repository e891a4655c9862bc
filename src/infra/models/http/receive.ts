import { createParser } from 'eventsource-parser'
import type { Clock } from '../../../state/ports.ts'
import type { Exchange } from '../openai/exchange.ts'
import { faultOfConnection, faultOfReply } from '../openai/faults.ts'
import { excerpt } from '../openai/upstream.ts'

/** The bytes of an answer, as values: events of a stream, or one whole body. What it is shows in its first character. */

export type Received = { kind: 'event' | 'whole'; text: string }
export type Receiving = {
  exchange: Exchange
  clock: Clock
  /** Of the whole body, after decompression. */
  maxBytes: number
  /** Of one line or event of a stream, in characters. */
  maxEvent: number
  /** What was asked for. `whole`: a JSON body is not looked into. */
  expects: 'sse' | 'ndjson' | 'whole'
  /** The event that ends the stream. */
  done: string | null
}
type Reader = ReadableStreamDefaultReader<Uint8Array>

/** How long a vendor may take to close after its last event before its connection is given up. */
const closingMs = 25

/** Decoded text of the body, counted and timed. Throws what `exchange.fail` returns. */
async function* texts(
  reader: Reader,
  { exchange, maxBytes }: Pick<Receiving, 'exchange' | 'maxBytes'>,
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

/** Takes pieces of text and gives what is complete. `last` gives what is left when the body has ended. */
type Splitter = { feed(text: string): string[]; last(): Received[] }

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const splitEvents = ({ exchange, maxEvent }: Receiving): Splitter => {
  let ready: string[] = []
  const parser = createParser({
    onEvent: ({ data }) => void ready.push(data),
    onError: ({ type }) => {
      if (type !== 'max-buffer-size-exceeded') return
      throw exchange.fail(faultOfReply(`sent an event of more than ${maxEvent} characters`, false))
    },
    maxBufferSize: maxEvent,
  })
  const take = (): string[] => {
    const events = ready
    ready = []
    return events
  }
  return {
    feed: (text) => {
      parser.feed(text)
      return take()
    },
    last: () => {
      parser.feed('\n\n') // the last event, when the empty line after it is missing
      return take().map((text) => ({ kind: 'event', text }))
    },
  }
}

/**
 * Lines that are JSON each; where the first one is not, the body is one JSON text written over several lines. A first
 * line that nobody asked for is held back until there is a second one, for it may be the whole answer.
 */
const splitLines = ({ exchange, maxEvent, expects }: Receiving): Splitter => {
  let pieces: string[] = []
  let length = 0
  let lines = 0
  let whole = false
  let held: string | null = null
  const complete = (): string => {
    const text = pieces.join('').trim()
    pieces = []
    length = 0
    return text
  }
  const keep = (text: string): void => {
    pieces.push(text)
    length += text.length
    if (lines === 0 || length <= maxEvent) return
    throw exchange.fail(faultOfReply(`sent a line of more than ${maxEvent} characters`, false))
  }
  return {
    feed: (text) => {
      const found: string[] = []
      let at = 0
      for (let end = text.indexOf('\n'); end !== -1 && !whole; end = text.indexOf('\n', at)) {
        keep(text.slice(at, end))
        at = end + 1
        const line = complete()
        if (line === '') continue
        whole = lines === 0 && !isJson(line)
        lines += whole ? 0 : 1
        if (whole) keep(`${line}\n`)
        else if (lines === 1 && expects !== 'ndjson') held = line
        else {
          if (held !== null) found.push(held)
          held = null
          found.push(line)
        }
      }
      if (at < text.length) keep(text.slice(at))
      return found
    },
    last: () => {
      const text = complete()
      if (text === '') return held === null ? [] : [{ kind: 'whole', text: held }]
      if (lines === 0) return [{ kind: expects === 'ndjson' && isJson(text) ? 'event' : 'whole', text }]
      return [...(held === null ? [] : [held]), text].map((one) => ({ kind: 'event', text: one }))
    },
  }
}

const splitWhole = (): Splitter => {
  const pieces: string[] = []
  return {
    feed: (text) => {
      pieces.push(text)
      return []
    },
    last: () => [{ kind: 'whole', text: pieces.join('') }],
  }
}

const splitterFor = (head: string, receiving: Receiving): Splitter => {
  if (!/^[[{]/.test(head)) return splitEvents(receiving)
  return receiving.expects === 'whole' ? splitWhole() : splitLines(receiving)
}

/** Waits a moment for the end of the body, so that the connection can be used again. */
const waitForEnd = async (reader: Reader, { exchange, clock }: Receiving): Promise<void> => {
  await Promise.race([reader.read(), clock.sleep(closingMs, exchange.signal)]).catch(() => {})
}

/** Events up to the one that ends the stream, or the one JSON body. Content types lie: the first character decides. */
export async function* receive(
  body: ReadableStream<Uint8Array>,
  receiving: Receiving,
): AsyncGenerator<Received> {
  const { exchange, done } = receiving
  const reader = body.getReader()
  let splitter: Splitter | undefined
  let head = ''
  let found = 0
  try {
    for await (const text of texts(reader, receiving)) {
      const fresh = splitter === undefined ? `${head}${text}`.trimStart() : text
      if (head.length < 1000) head = splitter === undefined ? fresh : `${head}${text.slice(0, 1000)}`
      if (fresh === '') continue
      splitter ??= splitterFor(fresh, receiving)
      for (const event of splitter.feed(fresh)) {
        found += 1
        if (done !== null && event.trim() === done) {
          exchange.end()
          return await waitForEnd(reader, receiving)
        }
        yield { kind: 'event', text: event }
      }
    }
    for (const last of splitter?.last() ?? []) {
      found += 1
      if (done !== null && last.text.trim() === done) return exchange.end()
      yield last
    }
  } finally {
    reader.cancel().catch(() => {})
  }
  if (found > 0) return
  const what = head === '' ? 'an empty reply' : `what is neither events nor JSON: ${excerpt(head)}`
  throw exchange.fail(faultOfReply(`sent ${what}`))
}

const errorBodyBytes = 64 * 1024
const longestErrorBodyMs = 2000

/** What can be read of an error body in good time: a 401 with a stalled body is still a 401. */
export const receiveError = async (
  response: Response,
  idleMs: number,
  { exchange, clock }: Pick<Receiving, 'exchange' | 'clock'>,
): Promise<string> => {
  exchange.heard() // or a late answer and its stalled body would count as no answer
  const reader = (response.body ?? new Blob([]).stream()).getReader()
  const decoder = new TextDecoder()
  let text = ''
  const read = async (): Promise<void> => {
    while (text.length < errorBodyBytes) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
    }
  }
  const over = new AbortController()
  const signal = AbortSignal.any([over.signal, exchange.signal])
  const wait = clock.sleep(Math.min(longestErrorBodyMs, idleMs / 2), signal)
  await Promise.race([read(), wait]).catch(() => {})
  over.abort()
  wait.catch(() => {})
  reader.cancel().catch(() => {})
  return text.slice(0, errorBodyBytes)
}
