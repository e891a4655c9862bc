import { z } from 'zod'
import type { Clock } from '../../../state/ports.ts'
import type { CanonicalResult, MeteredUsage, ProviderOutcome, ProviderRequest } from '../ports.ts'
import { AnsweredError, Unreadable } from '../unreadable.ts'
import { type Exchange, openExchange } from './exchange.ts'
import { type Fault, faultOfErrorObject, faultOfReply } from './faults.ts'
import { excerpt } from './upstream.ts'

/** What was asked for is there, or why it is not. `thrown` is what ended the work. */
type Ended = { exchange: Exchange; thrown: unknown }

/** Works on one exchange under its clocks. Rejects only when the caller aborts, with the signal's reason. */
export const underClocks = async (
  { model, endsAtMs }: Pick<ProviderRequest, 'model' | 'endsAtMs'>,
  { id, clock }: { id: string; clock: Clock },
  work: (exchange: Exchange) => Promise<void>,
  signal: AbortSignal,
): Promise<Ended> => {
  const clocks = model.endpoint.timeouts
  const exchange = openExchange({ id, clock, clocks, endsAtMs }, signal)
  let thrown: unknown
  try {
    await Promise.race([work(exchange), exchange.stopped])
  } catch (error) {
    thrown = error
  } finally {
    exchange.close()
  }
  signal.throwIfAborted()
  return { exchange, thrown }
}

/** What the SDK threw while it read the answer: an error object in it, or what is not JSON or of another shape. */
export const faultOfThrown = (error: unknown): Fault => {
  if (error instanceof AnsweredError) return faultOfErrorObject(error.error)
  if (error instanceof Unreadable) return faultOfUnreadable(error)
  if (error instanceof Error && 'error' in error && error.error != null)
    return faultOfErrorObject(error.error)
  if (error instanceof SyntaxError) return faultOfReply('sent what is not JSON')
  if (error instanceof z.ZodError) return faultOfReply('sent what is no answer of the protocol')
  return faultOfReply(`sent what could not be read: ${excerpt(String(error))}`)
}

const faultOfUnreadable = ({ place, message }: Unreadable): Fault => ({
  code: 'model_unreadable_answer',
  what: `sent an answer that its response format cannot read, at ${place}: ${message}`,
  retry: false,
})

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
