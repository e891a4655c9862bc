import type {
  CanonicalResult,
  ProviderOutcome,
  ProviderRequest,
  ResponseReader,
  ResultDelta,
} from '../../ports/model-ports.ts'
import { UnreadableResponseError, VendorReportedError } from '../../ports/unreadable-response.ts'
import type { FormatView } from '../../schemas/response-format.ts'
import type { HttpExchangeResult } from '../../transport/http-exchange.ts'
import {
  createBadReplyError,
  type ProviderError,
  readErrorObject,
  truncatedError,
} from '../../transport/provider-errors.ts'
import type { ResponseChunk } from '../../transport/response-splitter.ts'
import { excerpt } from '../../transport/upstream-error.ts'

/** The answer to one exchange, read by a response format while it is received. */
export type TemplateResponse = {
  take(chunk: ResponseChunk): void
  outcome(exchange: HttpExchangeResult): ProviderOutcome
}

type Options = Pick<ProviderRequest, 'usedIds' | 'onDelta' | 'onUsage' | 'onRaw'> & {
  reader: ResponseReader
  format: FormatView
}

const maxRawBytes = 64 * 1024

/** Thrown by `take` for an event or a body that is not JSON. */
class NotJsonError extends Error {}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new NotJsonError(`sent what is not JSON: ${excerpt(text)}`)
  }
}

/** Whether a path or a closing event marks the end; otherwise the end of the body does. */
const marksItsEnd = ({ stream }: FormatView): boolean =>
  stream?.paths.finish !== undefined || stream?.done !== undefined

const isWithheld = ({ finish, text, tool_calls, images }: CanonicalResult): boolean =>
  finish === 'content_filter' && text === '' && tool_calls.length === 0 && images.length === 0

/** Starts to read one answer. Call `outcome` once, after the exchange. */
export const openTemplateResponse = ({
  reader,
  format,
  usedIds,
  onDelta,
  onUsage,
  onRaw,
}: Options): TemplateResponse => {
  const stream = format.stream == null ? null : reader.stream(usedIds)
  let result: CanonicalResult | null = null
  let raw = ''
  let events = 0
  let onlyEvent: unknown

  const emit = (delta: ResultDelta): void => {
    if (delta.text !== '' || delta.reasoning !== '') onDelta(delta)
  }
  const emitUsage = (usage: CanonicalResult['usage']): void => {
    if (usage !== null) onUsage?.(usage)
  }
  const takeWhole = (value: unknown): void => {
    result = reader.read(value, usedIds)
    emitUsage(result.usage)
    emit({ text: result.text, reasoning: result.reasoning })
  }
  const takeEvent = (value: unknown): void => {
    if (stream === null) {
      takeWhole(value)
      return
    }
    events += 1
    onlyEvent = value
    const delta = stream.take(value)
    emitUsage(stream.usage())
    emit(delta)
  }
  /** A stream of one line may be the whole answer of a vendor that does not stream. */
  const settleOnlyEvent = (): void => {
    if (events !== 1 || stream?.finished() !== false || format.stream?.format !== 'ndjson') return
    try {
      takeWhole(onlyEvent)
    } catch (error) {
      if (!(error instanceof UnreadableResponseError)) throw error
    }
  }
  const usage = () => result?.usage ?? stream?.usage() ?? null
  const finished = (): boolean => result !== null || stream?.finished() === true

  const unreadable = (error: UnreadableResponseError): ProviderOutcome => {
    const { place, message } = error
    const counted = error.usage ?? usage()
    if (error instanceof VendorReportedError) {
      return { ok: false, error: readErrorObject(error.error), usage: counted }
    }
    const what = `sent an answer that the response format ${format.name} cannot read: ${message}`
    const unreadableError: ProviderError = { code: 'model_unreadable_answer', what, retry: false }
    return { ok: false, error: unreadableError, usage: counted, raw, place }
  }
  const findError = ({ error, ended }: HttpExchangeResult): ProviderError | undefined => {
    if (error !== undefined) return error.interrupted === true && finished() ? undefined : error
    if (finished() || ended || (events > 0 && !marksItsEnd(format))) return undefined
    return events > 0 ? truncatedError : createBadReplyError('sent an empty reply')
  }
  const conclude = (exchange: HttpExchangeResult): ProviderOutcome => {
    if (exchange.thrown !== undefined) throw exchange.thrown
    if (exchange.error === undefined) settleOnlyEvent()
    const error = findError(exchange)
    if (error !== undefined) return { ok: false, error, usage: usage() }
    const final = result ?? stream?.end()
    if (final === undefined)
      return { ok: false, error: createBadReplyError('sent an empty reply'), usage: null }
    if (!isWithheld(final)) return { ok: true, result: final }
    const what = 'withheld its whole reply'
    return { ok: false, error: { code: 'model_content_filtered', what, retry: false }, usage: final.usage }
  }

  return {
    take: ({ kind, text }) => {
      if (raw.length < maxRawBytes)
        raw += `${raw === '' ? '' : '\n'}${text}`.slice(0, maxRawBytes - raw.length)
      const value = parse(text)
      onRaw?.(value)
      if (kind === 'event') return takeEvent(value)
      // Gemini streams a JSON list unless events are requested
      if (stream === null || !Array.isArray(value)) return takeWhole(value)
      for (const event of value) takeEvent(event)
    },
    outcome: (exchange) => {
      try {
        return conclude(exchange)
      } catch (error) {
        if (error instanceof UnreadableResponseError) return unreadable(error)
        if (error instanceof NotJsonError)
          return { ok: false, error: createBadReplyError(error.message), usage: usage() }
        throw error
      }
    },
  }
}
