import type { CanonicalResult, ProviderOutcome, ProviderRequest, StreamReader } from '../ports/model-ports.ts'
import {
  ReplyLimitError,
  UnreadableResponseError,
  VendorReportedError,
} from '../ports/unreadable-response.ts'
import {
  type HttpExchangeRequest,
  type ParsedChunk,
  runHttpExchange,
  type Transport,
} from '../transport/http-exchange.ts'
import {
  createBadReplyError,
  ProtocolError,
  type ProviderError,
  readErrorObject,
} from '../transport/provider-errors.ts'
import { excerpt } from '../transport/upstream-error.ts'

/**
 * An answer that is being received. Once it has `finished`, a lost connection does not matter. Its usage is the last one of this
 * provider request, never a sum: servers repeat and accumulate it. `end` throws UnreadableResponseError; call it once.
 */
export type AnswerDraft = Omit<StreamReader, 'take'> & {
  /** Takes one parsed chunk; `whole`: it is the one body of the answer. Throws ProtocolError or UnreadableResponseError. */
  take(chunk: unknown, whole: boolean): void
  /** What is missing in an answer that has been received; `ended`: its closing event came. */
  findEndError(ended: boolean): ProviderError | undefined
}

/** The error of an answer that could not be read: an error object in it, no JSON, or another shape. */
const toProviderError = (thrown: unknown, { format }: ProviderRequest['model']): ProviderError => {
  if (thrown instanceof VendorReportedError) return readErrorObject(thrown.error)
  if (thrown instanceof ReplyLimitError) return createBadReplyError(`sent ${thrown.message}`, false)
  if (thrown instanceof UnreadableResponseError) {
    const what = `sent an answer that the response format ${format?.name} cannot read: ${thrown.message}`
    return { code: 'model_unreadable_answer', what, retry: false }
  }
  return createBadReplyError(
    thrown instanceof ProtocolError
      ? `sent ${thrown.message}`
      : `sent what could not be read: ${excerpt(String(thrown))}`,
  )
}

const isWithheld = ({ finish, text, video, ...lists }: CanonicalResult): boolean =>
  finish === 'content_filter' &&
  text === '' &&
  video === null &&
  [lists.tool_calls, lists.images, lists.embeddings, lists.ranking].every(({ length }) => length === 0)

const maxRawLength = 64 * 1024
/** More than any model makes at once. */
const maxImages = 1000

/** Sends one HTTP request and reads its answer into the draft. Rejects only when the caller aborts. */
export const exchangeAnswer = async (
  transport: Transport,
  exchange: Pick<HttpExchangeRequest, 'request' | 'expects' | 'done' | 'beforeSend'>,
  draft: AnswerDraft,
  request: Pick<ProviderRequest, 'model' | 'endsAtMs' | 'over' | 'onUsage' | 'onAnswer' | 'onRaw'>,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { model, endsAtMs, over, onUsage, onAnswer, onRaw } = request
  let raw = ''
  const take = ({ kind, text, value }: ParsedChunk): boolean => {
    const before = draft.size()
    raw += `${raw === '' ? '' : '\n'}${text}`.slice(0, maxRawLength - raw.length)
    onRaw?.(value)
    draft.take(value, kind === 'whole')
    onAnswer?.()
    const usage = draft.usage()
    if (usage !== null) onUsage?.(usage)
    return draft.size() > before
  }
  const toUnreadOutcome = (thrown: unknown): ProviderOutcome => {
    const isUnreadable = thrown instanceof UnreadableResponseError
    const usage = (isUnreadable ? thrown.usage : null) ?? draft.usage()
    const outcome = { ok: false as const, error: toProviderError(thrown, model), usage }
    return isUnreadable && !(thrown instanceof VendorReportedError || thrown instanceof ReplyLimitError)
      ? { ...outcome, place: thrown.place, raw: raw.toWellFormed() }
      : outcome
  }
  const { error, thrown, ended, cut } = await runHttpExchange(
    transport,
    { ...exchange, endpoint: model.endpoint, endsAtMs, over, take },
    signal,
  )
  // what cannot be read behind the end of a reply is not part of it
  const isBehind = thrown instanceof ProtocolError && draft.finished()
  if (thrown !== undefined && !isBehind) return toUnreadOutcome(thrown)
  try {
    // its usage comes last: what was counted by then is not of the whole
    if (cut && !draft.finished()) return { ok: true, result: { ...draft.end(), usage: null } }
    const isWhole = cut || (error?.interrupted && draft.finished())
    const failure = isWhole ? undefined : (error ?? draft.findEndError(ended))
    if (failure !== undefined) return { ok: false, error: failure, usage: draft.usage() }
    const result = draft.end()
    if (result.images.length > maxImages) {
      const error = createBadReplyError(`sent more than ${maxImages} images`, false)
      return { ok: false, error, usage: result.usage }
    }
    if (!isWithheld(result)) return { ok: true, result }
    const what = 'withheld its whole reply'
    return { ok: false, error: { code: 'model_content_filtered', what, retry: false }, usage: result.usage }
  } catch (unreadable) {
    return toUnreadOutcome(unreadable)
  }
}
