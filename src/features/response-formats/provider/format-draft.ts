import type {
  CanonicalResult,
  ProviderRequest,
  ResponseReader,
  ResultDelta,
  StreamReader,
} from '../../../models/ports/model-ports.ts'
import { UnreadableResponseError } from '../../../models/ports/unreadable-response.ts'
import type { AnswerDraft } from '../../../models/providers/answer-exchange.ts'
import type { StreamFormat } from '../../../models/schemas/response-format.ts'
import { createBadReplyError, truncatedError } from '../../../models/transport/provider-errors.ts'

/**
 * How the stream of a format is received. `marksItsEnd`: otherwise the end of the body is the end of the answer.
 * `comesAsList`: a body that is a JSON list has the events; otherwise it is read as the whole answer.
 */
type StreamRules = { format: StreamFormat['format']; marksItsEnd: boolean; comesAsList: boolean }

/** A draft of an answer that the model's response format reads. */
export const createFormatDraft = (
  reader: ResponseReader,
  { format, marksItsEnd, comesAsList }: StreamRules,
  { usedIds, onDelta }: Pick<ProviderRequest, 'usedIds' | 'onDelta'>,
): AnswerDraft => {
  const stream = reader.stream(usedIds)
  let result: CanonicalResult | null = null
  let events = 0
  let onlyEvent: unknown

  const emit = (delta: ResultDelta): void => {
    if (delta.text !== '' || delta.reasoning !== '') onDelta(delta)
  }
  const takeWhole = (value: unknown): void => {
    result = reader.read(value, usedIds)
    emit({ text: result.text, reasoning: result.reasoning })
  }
  /** A stream of one line, in which no chunk was found, may be the whole answer of a vendor that does not stream. */
  const settleOnlyEvent = (): void => {
    if (events !== 1 || stream?.finished() !== false || stream.size() > 0 || format !== 'ndjson') return
    try {
      takeWhole(onlyEvent)
    } catch (error) {
      if (!(error instanceof UnreadableResponseError)) throw error
    }
  }
  const finished = (): boolean => result !== null || stream?.finished() === true
  return {
    take: (chunk, whole) => {
      // Gemini streams a JSON list unless events are requested
      const isWhole = stream === null || (whole && !(comesAsList && Array.isArray(chunk)))
      if (isWhole) return takeWhole(chunk)
      for (const event of whole ? (chunk as unknown[]) : [chunk]) {
        events += 1
        onlyEvent = event
        emit(stream.take(event))
      }
    },
    size: () => stream?.size() ?? 0,
    finished,
    findEndError: (ended) => {
      settleOnlyEvent()
      if (finished()) return undefined
      if (events === 0) return createBadReplyError('sent an empty reply')
      return ended || !marksItsEnd ? undefined : truncatedError
    },
    usage: () => result?.usage ?? stream?.usage() ?? null,
    end: () => result ?? (stream as StreamReader).end(),
  }
}
