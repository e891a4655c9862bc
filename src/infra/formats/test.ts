import type { FormatInput } from '../../state/registry/response-format.ts'
import type { CanonicalResult } from '../models/ports.ts'
import { AnsweredError, Unreadable } from '../models/unreadable.ts'
import { compile, type ReadableFormat } from './compile.ts'
import { eventsOf } from './events.ts'

/** What a format reads out of an answer, to be shown beside it. `error`: the answer is one, and says so. */
export type Tested =
  | { ok: true; parsed: CanonicalResult }
  | { ok: false; parsed: null; place: string; detail: string; error?: unknown }

const readAll = (format: ReadableFormat, raw: unknown): CanonicalResult => {
  const reader = compile(format)
  if (typeof raw !== 'string') return reader.read(raw)
  const stream = reader.stream([])
  if (stream === null || format.stream == null) {
    throw new Unreadable(
      'stream',
      'this is the text of a stream, and the format does not say how to read one',
    )
  }
  for (const event of eventsOf(raw, format.stream)) stream.take(event)
  if (format.stream.paths.finish !== undefined && !stream.finished()) {
    throw new Unreadable('finish', 'the stream ended before the vendor said that its answer was finished')
  }
  return stream.end()
}

/** `raw` is a whole answer as JSON, or the text of a stream. Throws only where the format itself is wrong. */
export const testFormat = (format: Pick<FormatInput, keyof ReadableFormat>, raw: unknown): Tested => {
  try {
    return { ok: true, parsed: readAll(format, raw) }
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    const { place, message } = error
    const failed = { ok: false, parsed: null, place, detail: message } as const
    return error instanceof AnsweredError ? { ...failed, error: error.error } : failed
  }
}
