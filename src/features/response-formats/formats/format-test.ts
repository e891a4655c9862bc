import { createParser } from 'eventsource-parser'
import type { CanonicalResult } from '../../../models/ports/model-ports.ts'
import { UnreadableResponseError, VendorReportedError } from '../../../models/ports/unreadable-response.ts'
import type { FormatTestView } from '../../../models/schemas/model-probe.ts'
import type { FormatView, StreamFormat } from '../../../models/schemas/response-format.ts'
import { isEndMark, listEventTexts } from '../../../models/transport/response-splitter.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { compileFormat } from './format-compiler.ts'
import type { ReadableFormat } from './result-draft.ts'

/** The data of each event, as text. The last one counts even when it is not terminated. */
const splitFrames = (text: string, format: StreamFormat['format']): string[] => {
  if (format === 'ndjson') return text.split('\n').filter((line) => line.trim() !== '')
  const frames: string[] = []
  const parser = createParser({
    onEvent: (event) => listEventTexts(event).forEach((one) => void frames.push(one)),
  })
  parser.feed(`${text.replace(/^\uFEFF/, '').trimStart()}\n\n`)
  return frames.filter((frame) => frame.trim() !== '')
}

/** The events in the text of a stream, up to the one that ends it. Throws UnreadableResponseError when one is not JSON. */
export const parseEvents = (text: string, { format, done }: Omit<StreamFormat, 'paths'>): unknown[] => {
  const frames = splitFrames(text, format)
  const end = frames.findIndex((frame) => isEndMark(frame, done))
  return (end === -1 ? frames : frames.slice(0, end)).map((frame, at) => {
    try {
      return JSON.parse(frame) as unknown
    } catch {
      const message = `event ${at} of the stream is not JSON: ${frame.slice(0, 100)}`
      throw new UnreadableResponseError(`/${at}`, message)
    }
  })
}

/** What a format reads in a response. `error`: the error that the vendor reports in the response. */
export type FormatTestResult =
  | { ok: true; parsed: CanonicalResult }
  | { ok: false; parsed: null; place: string; detail: string; error?: unknown }

const readResponse = (format: ReadableFormat, raw: unknown): CanonicalResult => {
  const reader = compileFormat(format)
  if (typeof raw !== 'string') return reader.read(raw)
  const stream = reader.stream([])
  if (stream === null || format.stream == null) {
    const message = 'this is the text of a stream, and the format does not say how to read one'
    throw new UnreadableResponseError('stream', message)
  }
  for (const event of parseEvents(raw, format.stream)) stream.take(event)
  if (format.stream.paths.finish !== undefined && !stream.finished()) {
    const message = 'the stream ended before the vendor reported that its response was finished'
    throw new UnreadableResponseError('finish', message)
  }
  return stream.end()
}

/** `raw` is a whole response as JSON, or the text of a stream. Throws only when the format itself is invalid. */
export const testFormat = (format: ReadableFormat, raw: unknown): FormatTestResult => {
  try {
    return { ok: true, parsed: readResponse(format, raw) }
  } catch (error) {
    if (!(error instanceof UnreadableResponseError)) throw error
    const { place, message } = error
    const failed = { ok: false, parsed: null, place, detail: message } as const
    return error instanceof VendorReportedError ? { ...failed, error: error.error } : failed
  }
}

/** Reads a response with a stored format. */
export const testStoredFormat = (format: FormatView, raw: Json): FormatTestView => {
  const tested = testFormat(format, raw)
  return tested.ok
    ? { ok: true, raw, parsed: tested.parsed as unknown as Json, place: null, detail: null }
    : { ok: false, raw, parsed: null, place: tested.place, detail: tested.detail }
}
