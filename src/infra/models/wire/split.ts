import { createParser } from 'eventsource-parser'
import type { Exchange } from './exchange.ts'
import { faultOfReply } from './faults.ts'

/** A piece of an answer: one event of a stream, or the one body. */
export type Piece = { kind: 'event' | 'whole'; text: string }

/** Takes text as it comes and gives the events that are complete. `last` gives what is left when the body has ended. */
export type Splitter = { feed(text: string): readonly string[]; last(): Piece[] }

export type SplitOptions = {
  exchange: Exchange
  /** The most one line or event may hold, in characters. */
  maxEvent: number
  /** What was asked for. `whole`: a JSON body is not looked into. */
  expects: 'sse' | 'ndjson' | 'whole'
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const splitEvents = ({ exchange, maxEvent }: SplitOptions): Splitter => {
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
const splitLines = ({ exchange, maxEvent, expects }: SplitOptions): Splitter => {
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

/** By how the body begins, for content types lie. */
export const splitterFor = (head: string, options: SplitOptions): Splitter => {
  if (!/^[[{]/.test(head)) return splitEvents(options)
  return options.expects === 'whole' ? splitWhole() : splitLines(options)
}
