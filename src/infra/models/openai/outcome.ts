import type { CanonicalResult, MeteredUsage, ProviderOutcome } from '../ports.ts'
import { AnsweredError, Unreadable } from '../unreadable.ts'
import { type Fault, faultOfErrorObject, faultOfReply } from '../wire/faults.ts'
import { excerpt } from '../wire/upstream.ts'
import { NotOfProtocol } from './shape.ts'

const faultOfUnreadable = ({ place, message }: Unreadable): Fault => ({
  code: 'model_unreadable_answer',
  what: `sent an answer that its response format cannot read, at ${place}: ${message}`,
  retry: false,
})

/** What was thrown while the answer was read: an error object in it, or what is not JSON or of another shape. */
export const faultOfThrown = (error: unknown): Fault => {
  if (error instanceof AnsweredError) return faultOfErrorObject(error.error)
  if (error instanceof Unreadable) return faultOfUnreadable(error)
  if (error instanceof SyntaxError) return faultOfReply('sent what is not JSON')
  if (error instanceof NotOfProtocol)
    return faultOfReply(`sent what is no answer of the protocol: ${error.message}`)
  return faultOfReply(`sent what could not be read: ${excerpt(String(error))}`)
}

/** Parses as leniently as the answers of servers need. Throws a SyntaxError, or the error that a server put in its answer. */
export const parsed = (text: string): unknown => {
  const value: unknown = JSON.parse(/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ') : text)
  if (typeof value === 'object' && value !== null && 'error' in value && value.error)
    throw new AnsweredError('/error', 'an error in place of an answer', value.error)
  return value
}

const withheld: Fault = { code: 'model_content_filtered', what: 'withheld its whole reply', retry: false }

const isEmpty = ({ text, tool_calls, images, video, embeddings, ranking }: CanonicalResult): boolean =>
  text === '' &&
  video === null &&
  [tool_calls, images, embeddings, ranking].every((list) => list.length === 0)

/** A whole answer as an outcome; one that a filter left nothing of is a failure. */
export const outcomeOfResult = (result: CanonicalResult): ProviderOutcome =>
  result.finish === 'content_filter' && isEmpty(result)
    ? { ok: false, fault: withheld, usage: result.usage }
    : { ok: true, result }

const mostRaw = 64 * 1024

/** A failure as an outcome; an answer that could not be read is kept, for an admin to see what came. */
export const outcomeOfFault = (
  fault: Fault,
  usage: MeteredUsage | null,
  thrown: unknown,
  raw: readonly unknown[],
): ProviderOutcome => {
  if (!(thrown instanceof Unreadable) || thrown instanceof AnsweredError) return { ok: false, fault, usage }
  const counted = thrown.usage ?? usage
  const text = raw.map((one) => JSON.stringify(one)).join('\n')
  return { ok: false, fault, usage: counted, place: thrown.place, raw: text.slice(0, mostRaw).toWellFormed() }
}
