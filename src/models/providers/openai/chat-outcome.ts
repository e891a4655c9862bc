import type { CanonicalResult, MeteredUsage, ProviderOutcome } from '../../ports/model-ports.ts'
import { UnreadableResponseError, VendorReportedError } from '../../ports/unreadable-response.ts'
import { createBadReplyError, type ProviderError, readErrorObject } from '../../transport/provider-errors.ts'
import { excerpt } from '../../transport/upstream-error.ts'
import { ProtocolError } from './chat-chunk.ts'

const toUnreadableError = ({ place, message }: UnreadableResponseError): ProviderError => ({
  code: 'model_unreadable_answer',
  what: `sent an answer that its response format cannot read, at ${place}: ${message}`,
  retry: false,
})

/** The error of an answer that could not be read: an error object in it, no JSON, or another shape. */
export const toProviderError = (error: unknown): ProviderError => {
  if (error instanceof VendorReportedError) return readErrorObject(error.error)
  if (error instanceof UnreadableResponseError) return toUnreadableError(error)
  if (error instanceof SyntaxError) return createBadReplyError('sent what is not JSON')
  if (error instanceof ProtocolError)
    return createBadReplyError(`sent what is no answer of the protocol: ${error.message}`)
  return createBadReplyError(`sent what could not be read: ${excerpt(String(error))}`)
}

/** Parses JSON with raw line breaks in strings. Throws a SyntaxError, or VendorReportedError for an error in the answer. */
export const parseReply = (text: string): unknown => {
  const value: unknown = JSON.parse(/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ') : text)
  if (typeof value === 'object' && value !== null && 'error' in value && value.error)
    throw new VendorReportedError('/error', 'an error in place of an answer', value.error)
  return value
}

const withheldError: ProviderError = {
  code: 'model_content_filtered',
  what: 'withheld its whole reply',
  retry: false,
}

const isEmpty = ({ text, tool_calls, images, video, embeddings, ranking }: CanonicalResult): boolean =>
  text === '' &&
  video === null &&
  [tool_calls, images, embeddings, ranking].every((list) => list.length === 0)

/** A complete answer as an outcome; one that a filter withheld is a failure. */
export const toResultOutcome = (result: CanonicalResult): ProviderOutcome =>
  result.finish === 'content_filter' && isEmpty(result)
    ? { ok: false, error: withheldError, usage: result.usage }
    : { ok: true, result }

const maxRawLength = 64 * 1024

/** A failure as an outcome; an answer that could not be read is attached for the admin. */
export const toErrorOutcome = (
  error: ProviderError,
  usage: MeteredUsage | null,
  thrown: unknown,
  raw: readonly unknown[],
): ProviderOutcome => {
  if (!(thrown instanceof UnreadableResponseError) || thrown instanceof VendorReportedError)
    return { ok: false, error, usage }
  const text = raw.map((one) => JSON.stringify(one)).join('\n')
  return {
    ok: false,
    error,
    usage: thrown.usage ?? usage,
    place: thrown.place,
    raw: text.slice(0, maxRawLength).toWellFormed(),
  }
}
