import { parseJsonOrText } from '../../infra/lib/json-text.ts'
import { type ErrorCode, isMasonError } from '../../state/errors.ts'
import { findRootCause } from '../../state/root-cause.ts'
import { classifyError, type ErrorMeaning } from './error-table.ts'
import type { HeaderWaits } from './stated-waits.ts'
import {
  excerpt,
  findReportedError,
  readPageWords,
  readUpstreamError,
  toJsonHead,
  type UpstreamError,
} from './upstream-error.ts'

/** The longest body of an error that is read, in characters. */
export const maxErrorLength = 64 * 1024

/** The code of a failed model call. */
export type ModelErrorCode = Extract<ErrorCode, `model_${string}`>

/** Why one provider request failed. */
export type ProviderError = {
  code: ModelErrorCode
  /** A phrase that follows "the model server": "answered 503: overloaded". */
  what: string
  remedy?: string
  retry: boolean
  status?: number
  /** What the vendor's codes, types and words say, as far as they say more than the status. */
  meaning?: ErrorMeaning
  /** The words that say so, where no code or type does: the vendor may have quoted them from the request. */
  words?: string
  /** The first words of the HTML page that came in place of an answer. */
  page?: string
  /** The wait that the server asked for. */
  retryAfterMs?: number
  /** The raw answer, only to find the field of the request that it names. Never shown as a whole. */
  body?: string
  /** We or the network ended the request: a reply that was complete by then still counts. */
  interrupted?: boolean
  /** The request was sent and no answer came in time: the vendor may still bill it. */
  mayBill?: boolean
  /** Nothing was sent. */
  unsent?: boolean
  /** The vendor reported the error in an answer: it did not do what was asked. */
  reported?: boolean
  /** The provider can send the same request in another form: retry at once. */
  retryNow?: boolean
}

const toErrorCode = (status: number): ModelErrorCode => {
  if (status === 403) return 'model_unauthorized'
  if (status === 408) return 'model_timeout'
  if (status === 413) return 'model_context_too_long'
  return isRetryable(status) ? 'model_unavailable' : 'model_bad_request'
}

/** 420, 498: the vendor is full; 421, 424: the model failed behind its server; 499: a gateway lost it. */
const isRetryable = (status: number): boolean =>
  [408, 409, 420, 421, 423, 424, 425, 498, 499].includes(status) || status >= 500

const balanceRemedy = 'add credit to the account of this key, or raise its quota'
const findStatusRemedy = (status: number): string | undefined => {
  if (status >= 300 && status < 400) return 'put the address it redirects to into OPENAI_BASE_URL'
  if (status === 404) return 'check OPENAI_MODEL, and OPENAI_BASE_URL (it usually ends in /v1)'
  return undefined
}

const codes: Record<ErrorMeaning, ModelErrorCode> = {
  filtered: 'model_content_filtered',
  too_long: 'model_context_too_long',
  bad_output: 'model_bad_reply',
  no_balance: 'model_unauthorized',
  bad_key: 'model_unauthorized',
  rate_limited: 'model_rate_limited',
  unknown_model: 'model_bad_request',
  unavailable: 'model_unavailable',
}
const retried: ReadonlySet<ErrorMeaning> = new Set(['bad_output', 'rate_limited', 'unavailable'])

const byStatus: Record<number, ErrorMeaning> = { 401: 'bad_key', 402: 'no_balance', 429: 'rate_limited' }

/** Whether a status says that the model is not at this address. */
const isElsewhere = (status: number): boolean => status < 400 || [404, 405, 407, 410].includes(status)

/** Statuses of pages that say enough by themselves. */
const isPlainStatus = (status: number): boolean =>
  status < 400 || status === 404 || status === 413 || byStatus[status] !== undefined

/** What an error means, by its codes, its words and then its status; and what is known of it. */
const readMeaning = (upstream: UpstreamError, status: number | undefined, waitMs: number | undefined) => {
  const known = classifyError(upstream, status)
  // Gemini words a limit per minute as a used-up quota: an account without balance names no time
  const isLimit =
    known?.meaning === 'no_balance' && known.words !== undefined && waitMs !== undefined && status !== 402
  if (isLimit) return { meaning: 'rate_limited' as const }
  if (known) return known
  if (status === undefined) return undefined
  const meaning = byStatus[status] ?? (isElsewhere(status) ? 'unknown_model' : undefined)
  return meaning && { meaning }
}

const createUpstreamError = (
  what: string,
  upstream: UpstreamError,
  status: number | undefined,
  more: Pick<ProviderError, 'status' | 'body' | 'reported'>,
  { askedMs = upstream.waitMs, resetMs }: HeaderWaits = {},
): ProviderError => {
  const known = readMeaning(upstream, status, askedMs)
  const meaning = known?.meaning
  const waitMs = askedMs ?? (meaning === 'rate_limited' ? resetMs : undefined)
  const retry = meaning === undefined ? status === undefined || isRetryable(status) : retried.has(meaning)
  // as the vendor's own status says
  const isLimited = meaning === 'no_balance' && (status === undefined || status === 429)
  const plainCode = meaning === undefined ? toErrorCode(status ?? 500) : codes[meaning]
  const code = isLimited ? 'model_rate_limited' : plainCode
  const remedy = meaning === 'no_balance' ? balanceRemedy : findStatusRemedy(status ?? 0)
  return {
    code,
    what,
    retry,
    ...more,
    ...known,
    ...(remedy !== undefined && { remedy }),
    ...(retry && waitMs !== undefined && { retryAfterMs: waitMs }),
  }
}

/** The error of an answer outside 2xx. `text` is the body, or the part of it that was read. */
export const createStatusError = (status: number, text: string, waits?: HeaderWaits): ProviderError => {
  const upstream = readUpstreamError(parseJsonOrText(text))
  const message = excerpt(upstream.message ?? text)
  const what = `answered ${status}${message === '' ? '' : `: ${message}`}`
  const page = readPageWords(text)
  const known = page === undefined ? upstream : { names: '' }
  const error = createUpstreamError(what, known, status, { status, body: text }, waits)
  if (page === undefined) return error
  // a page is of a gateway: it says nothing about the request
  return isPlainStatus(status)
    ? { ...error, page }
    : { ...error, code: 'model_unavailable', retry: true, page }
}

/** The error that a 2xx reports, as a body or as an event of the stream: an error object, its text, or the whole event. */
export const readErrorObject = (error: unknown): ProviderError => {
  const value = findReportedError(error) === null ? { error } : error
  const text = toJsonHead(value, maxErrorLength)
  const upstream = readUpstreamError(value)
  if (upstream.status !== undefined) return { ...createStatusError(upstream.status, text), reported: true }
  const what = `sent an error in its reply: ${excerpt(upstream.message ?? text)}`
  return createUpstreamError(what, upstream, undefined, { body: text, reported: true })
}

/** Thrown for an answer outside the protocol. The message follows "the model server sent". */
export class ProtocolError extends Error {}

/** Answers of gateways between us and the vendor, which may have acted all the same. */
const gatewayStatuses = new Set([408, 499, 502, 504, 524])

/** Whether the vendor may have done what was asked although the request failed. */
export const mayHaveActed = ({ unsent, reported, status }: ProviderError): boolean =>
  !unsent && !reported && (status === undefined || gatewayStatuses.has(status))

const timeoutCodes = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** The error of a connection that failed or broke. */
export const createConnectionError = (error: unknown, stage: 'headers' | 'body'): ProviderError => {
  if (isMasonError(error, 'egress_refused'))
    return {
      code: 'model_unavailable',
      what: `may not be reached: ${error.message}`,
      retry: false,
      ...(error.remedy !== undefined && { remedy: error.remedy }),
    }
  const { code, message } = findRootCause(error)
  const timeout = code !== undefined && timeoutCodes.has(code)
  return {
    code: timeout ? 'model_timeout' : 'model_unavailable',
    what: `${stage === 'headers' ? 'could not be reached' : 'cut the reply short'}: ${excerpt(message)}`,
    retry: true,
    interrupted: true,
  }
}

/** The outcome of a request that was not sent, because the registry is wrong. */
export const createUnsentOutcome = (code: ModelErrorCode, what: string, remedy?: string) => ({
  ok: false as const,
  error: { code, what, retry: false, unsent: true, ...(remedy && { remedy }) },
  usage: null,
})

/** A reply that ended early. */
export const truncatedError: ProviderError = {
  code: 'model_unavailable',
  what: 'ended its reply before it was finished',
  retry: true,
  interrupted: true,
}

/** The error of a reply outside the protocol. */
export const createBadReplyError = (what: string, retry = true): ProviderError => ({
  code: 'model_bad_reply',
  what,
  retry,
})

/** Bytes of content a second, on average over the idle timeout: a slow model on a CPU writes 1 token a second, in 10 bytes or more. */
export const leastRate = 5

/** The error of a timeout; only the total one is final. */
export const createTimeoutError = (
  which: 'first byte' | 'first content' | 'idle' | 'rate' | 'total',
  ms: number,
): ProviderError => ({
  code: 'model_timeout',
  what: {
    'first byte': `sent nothing for ${ms} ms`,
    'first content': `kept the connection alive for ${ms} ms and sent no content`,
    rate: `sent its reply too slowly: on average less than ${leastRate} bytes a second for ${ms} ms`,
    idle: `stopped sending for ${ms} ms in the middle of its reply`,
    total: `had no full reply within ${ms} ms, retries included`,
  }[which],
  retry: which !== 'total',
  interrupted: true,
  mayBill: true,
})
