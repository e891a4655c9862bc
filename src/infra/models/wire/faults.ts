import { type ErrorCode, isMasonError } from '../../../state/errors.ts'
import { classify, excerpt, readUpstream } from './upstream.ts'

export type ModelErrorCode = Extract<ErrorCode, `model_${string}`>

/** Why one provider request failed, before it is known whether another one follows. */
export type Fault = {
  code: ModelErrorCode
  /** A phrase that follows "the model server": "answered 503: overloaded". */
  what: string
  remedy?: string
  retry: boolean
  status?: number
  /** How long the server asked to be left alone. */
  retryAfterMs?: number
  /** The raw answer, only to see which field of the request it names. Never shown whole. */
  body?: string
  /** The request was cut short by us or by the network: a reply that was complete by then still counts. */
  interrupted?: boolean
  /** The request went out and no answer came in time: the vendor may bill it all the same. */
  mayBill?: boolean
  /** The same request can be put in another way, which the provider has noted: ask it again at once. */
  again?: boolean
}

const codeOfStatus = (status: number): ModelErrorCode => {
  if (status === 401 || status === 402 || status === 403) return 'model_unauthorized'
  if (status === 408) return 'model_timeout'
  if (status === 413) return 'model_context_too_long'
  if (status === 429) return 'model_rate_limited'
  return status === 409 || status === 425 || status >= 500 ? 'model_unavailable' : 'model_bad_request'
}

const retryable = (status: number): boolean =>
  status === 408 || status === 409 || status === 425 || status === 429 || status >= 500

const remedyOfStatus = (status: number): string | undefined => {
  if (status >= 300 && status < 400) return 'put the address it redirects to into OPENAI_BASE_URL'
  if (status === 402) return 'add credit to the account of this key'
  if (status === 404) return 'check OPENAI_MODEL, and OPENAI_BASE_URL (it usually ends in /v1)'
  return undefined
}

/** The fault of an answer outside 2xx. `text` is the body, or what could be read of it. */
export const faultOfStatus = (status: number, text: string, retryAfterMs?: number): Fault => {
  const upstream = readUpstream(text)
  const known = classify(upstream)
  const said = excerpt(upstream.message ?? text)
  const what = `answered ${status}${said === '' ? '' : `: ${said}`}`
  const more = { status, body: text, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  if (known === 'out_of_quota') {
    return {
      code: 'model_rate_limited',
      what,
      retry: false,
      remedy: 'add credit or raise the quota',
      ...more,
    }
  }
  if (known !== undefined && known !== 'rate_limited' && status !== 401 && status !== 429) {
    return { code: known, what, retry: false, ...more }
  }
  const remedy = remedyOfStatus(status)
  const fault = { code: codeOfStatus(status), what, retry: retryable(status), ...more }
  return remedy === undefined ? fault : { ...fault, remedy }
}

/** The fault of an `error` object that came inside a 200, as a body or as an event of the stream. */
export const faultOfErrorObject = (error: unknown): Fault => {
  const text = JSON.stringify({ error }) ?? ''
  const upstream = readUpstream(text)
  if (upstream.status !== undefined) return faultOfStatus(upstream.status, text)
  const known = classify(upstream)
  const what = `sent an error in its reply: ${excerpt(upstream.message ?? text)}`
  if (known === 'out_of_quota' || known === 'rate_limited') {
    return { code: 'model_rate_limited', what, retry: known === 'rate_limited' }
  }
  if (known !== undefined) return { code: known, what, retry: false }
  return { code: 'model_unavailable', what, retry: true }
}

const timeoutCodes = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** The innermost error, which for `fetch failed` is the one that says something. */
const deepest = (error: unknown, depth = 0): { code?: string; message: string } => {
  if (!(error instanceof Error)) return { message: String(error) }
  if (error.cause !== undefined && depth < 8) return deepest(error.cause, depth + 1)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  // connecting to several addresses fails with an AggregateError, whose message is empty
  const message = error.message === '' ? (code ?? error.name) : error.message
  return code === undefined ? { message } : { code, message }
}

/** The fault of a connection that could not be made or did not last. */
export const faultOfConnection = (error: unknown, stage: 'headers' | 'body'): Fault => {
  if (isMasonError(error, 'egress_refused')) {
    const remedy = error.remedy === undefined ? {} : { remedy: error.remedy }
    return {
      code: 'model_unavailable',
      what: `may not be reached: ${error.message}`,
      retry: false,
      ...remedy,
    }
  }
  const { code, message } = deepest(error)
  const timeout = code !== undefined && timeoutCodes.has(code)
  return {
    code: timeout ? 'model_timeout' : 'model_unavailable',
    what: `${stage === 'headers' ? 'could not be reached' : 'cut the reply short'}: ${excerpt(message)}`,
    retry: true,
    interrupted: true,
  }
}

export const cutShort: Fault = {
  code: 'model_unavailable',
  what: 'ended its reply before it was finished',
  retry: true,
  interrupted: true,
}

export const faultOfReply = (what: string, retry = true): Fault => ({ code: 'model_bad_reply', what, retry })

export const faultOfClock = (which: 'first byte' | 'idle' | 'total', ms: number): Fault => ({
  code: 'model_timeout',
  what: {
    'first byte': `sent nothing for ${ms} ms`,
    idle: `stopped sending for ${ms} ms in the middle of its reply`,
    total: `had no full reply within ${ms} ms, retries included`,
  }[which],
  retry: which !== 'total',
  interrupted: true,
  mayBill: true,
})
