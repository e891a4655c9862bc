import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { isJsonText, parseJsonOrText } from '../../infra/lib/json-text.ts'
import type { ExchangeControl } from './exchange-control.ts'
import { maxBlockingLength } from './json-parser.ts'
import { createBadReplyError } from './provider-errors.ts'
import { findReportedError, readErrorValue } from './upstream-error.ts'

/** A chunk of an answer: one event of a stream, or the one body. */
export type ResponseChunk = { kind: 'event' | 'whole'; text: string }

/** Splits received text into complete events. `last` returns the rest after the end of the body. */
export type ResponseSplitter = { feed(text: string): readonly string[]; last(): ResponseChunk[] }

/** What to split, and the limits. */
export type ResponseSplitOptions = {
  exchange: ExchangeControl
  /** The longest line or event, in characters. */
  maxEvent: number
  /** The requested format. `whole`: a JSON body is not split. */
  expects: 'sse' | 'ndjson' | 'whole' | 'bytes'
}

/** Whether a line is JSON of its own. A long one is judged by its ends, as parsing it would block the process. */
const isWholeLine = (text: string): boolean =>
  text.length > maxBlockingLength ? text.endsWith(text.startsWith('{') ? '}' : ']') : isJsonText(text)

/** Whether the last event of a body broke off. */
export const isCutEvent = ({ kind, text }: ResponseChunk): boolean =>
  kind === 'event' && /^[[{]/.test(text) && !isWholeLine(text)

/** Whether an event ends its stream: gateways end the streams of all formats like those of OpenAI. `done`: how this format does, whatever its spaces. */
export const isEndMark = (text: string, done?: string | null): boolean =>
  [done, '[DONE]', '"[DONE]"'].includes(done && text.length <= 100 ? text.replaceAll(/\s/g, '') : text.trim())

/** The texts in an event; an empty one keeps the connection alive. What is named an error is one, and Spring doubles `data:`. */
export const listEventTexts = ({ event, data }: EventSourceMessage): string[] => {
  if (event && /^(ping|heartbeat|keep-?alive)$/i.test(event)) return ['']
  const text = data.startsWith('data:') ? data.slice(5).trimStart() : data
  if (event && text.length <= maxBlockingLength && /^(error|exception)$/i.test(event)) {
    const value = parseJsonOrText(text)
    return [findReportedError(value) ? text : JSON.stringify({ error: readErrorValue(value) ?? event })]
  }
  // some servers send no empty line between events
  const end = text.startsWith('{') ? text.indexOf('\n') : -1
  return end > 0 && isWholeLine(text.slice(0, end)) ? text.split('\n') : [text]
}

const splitEvents = ({ exchange, maxEvent }: ResponseSplitOptions): ResponseSplitter => {
  const ready: string[] = []
  const parser = createParser({
    // no spread: an event may have more texts than a call takes arguments
    onEvent: (event) => listEventTexts(event).forEach((text) => void ready.push(text)),
    onError: ({ type, field, value = '', line = '' }) => {
      // llama.cpp sends `error: {…}`, others JSON alone
      if (field === 'error') ready.push(...listEventTexts({ event: field, data: value }))
      else if (line.startsWith('{') && isWholeLine(line)) ready.push(line)
      if (type !== 'max-buffer-size-exceeded') return
      throw exchange.fail(createBadReplyError(`sent an event of more than ${maxEvent} characters`, false))
    },
    maxBufferSize: maxEvent,
  })
  return {
    feed: (text) => {
      parser.feed(text)
      return ready.splice(0)
    },
    last: () => {
      parser.feed('\n\n') // the last event, when the empty line after it is missing
      return ready.splice(0).map((text) => ({ kind: 'event', text }))
    },
  }
}

/**
 * Splits lines of JSON; if the first line is not JSON, the body is one JSON text of several lines. If lines were not
 * requested, the first one is held back until there is a second one, because it may be the whole answer.
 */
const splitLines = ({ exchange, maxEvent, expects }: ResponseSplitOptions): ResponseSplitter => {
  let chunks: string[] = []
  let length = 0
  let lines = 0
  let whole = false
  let held: string | null = null
  const complete = (): string => {
    const text = chunks.join('').trim()
    chunks = []
    length = 0
    return text
  }
  const keep = (text: string): void => {
    chunks.push(text)
    length += text.length
    if (lines === 0 || length <= maxEvent) return
    throw exchange.fail(createBadReplyError(`sent a line of more than ${maxEvent} characters`, false))
  }
  return {
    feed: (text) => {
      const events: string[] = []
      let at = 0
      for (let end = text.indexOf('\n'); end !== -1 && !whole; end = text.indexOf('\n', at)) {
        keep(text.slice(at, end))
        at = end + 1
        const line = complete()
        if (line === '') continue
        whole = lines === 0 && !isWholeLine(line)
        lines += whole ? 0 : 1
        if (whole) keep(`${line}\n`)
        else if (lines === 1 && expects !== 'ndjson') held = line
        else {
          if (held !== null) events.push(held)
          held = null
          events.push(line)
        }
      }
      if (at < text.length) keep(text.slice(at))
      return events
    },
    last: () => {
      const text = complete()
      if (text === '') return held === null ? [] : [{ kind: 'whole', text: held }]
      if (lines === 0) return [{ kind: expects === 'ndjson' && isWholeLine(text) ? 'event' : 'whole', text }]
      return [...(held === null ? [] : [held]), text].map((one) => ({ kind: 'event', text: one }))
    },
  }
}

const splitWhole = (): ResponseSplitter => {
  const chunks: string[] = []
  return {
    feed: (text) => {
      chunks.push(text)
      return []
    },
    last: () => [{ kind: 'whole', text: chunks.join('') }],
  }
}

/** Detects the format by the first characters of the body, because content types are unreliable. */
export const createResponseSplitter = (head: string, options: ResponseSplitOptions): ResponseSplitter => {
  if (!/^[[{]/.test(head)) return splitEvents(options)
  return options.expects === 'whole' || options.expects === 'bytes' ? splitWhole() : splitLines(options)
}
