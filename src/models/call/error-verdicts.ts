import type { Candidate, HealthSubject } from '../ports/call-ports.ts'
import type { CanonicalRequest } from '../ports/model-ports.ts'
import type { ProviderError } from '../transport/provider-errors.ts'

/**
 * What a request shows about a subject: that it works, nothing, or a failure. `isCertain`: no content of a request can cause
 * it. `isStrong`: it closes the subject for its own prompt too. `byModel`: it counts once a second model has it.
 */
type Verdict =
  | 'good'
  | 'unknown'
  | { kind: 'cool' | 'disable'; isCertain?: true; isStrong?: true; byModel?: true }
type Verdicts = Record<HealthSubject, Verdict>

const allGood: Verdicts = { endpoint: 'good', model: 'good', key: 'good', key_model: 'good' }
const nothing: Verdicts = { endpoint: 'unknown', model: 'unknown', key: 'unknown', key_model: 'unknown' }
const cool = { kind: 'cool' } as const

const toPlainWords = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')

/** Whether the words that say what an error means may be a quotation of the request. */
const isQuotation = (words: string | undefined, { files: _, ...sent }: CanonicalRequest): boolean =>
  words !== undefined && toPlainWords(JSON.stringify(sent)).includes(toPlainWords(words))

const isKeyError = ({ code, meaning, status }: ProviderError): boolean =>
  meaning === 'no_balance' ||
  meaning === 'bad_key' ||
  (code === 'model_unauthorized' && (status === 401 || status === 402))

/** What a provider request shows about each subject; `error` null: it was answered. */
export const judgeRequest = (error: ProviderError | null, ask: CanonicalRequest): Verdicts => {
  if (error === null) return allGood
  const { code, meaning, unsent, retry, status } = error
  // our own deadline has passed, the address is refused, or the registry is wrong
  if (!retry && (unsent || code === 'model_timeout')) return nothing
  if (unsent) return { ...nothing, endpoint: cool }
  if (isKeyError(error)) {
    const isCertain = !isQuotation(error.words, ask)
    return { ...nothing, endpoint: 'good', key: { kind: 'disable', ...(isCertain && { isCertain }) } }
  }
  switch (code) {
    case 'model_unauthorized':
      return { ...nothing, endpoint: 'good', key_model: { kind: 'disable', isStrong: true } }
    case 'model_rate_limited':
      return { ...allGood, key: { ...cool, byModel: true }, key_model: { ...cool, isStrong: true } }
    case 'model_unavailable':
    case 'model_timeout':
      return {
        ...nothing,
        model: cool,
        endpoint: status !== undefined && status >= 500 ? { ...cool, byModel: true } : 'unknown',
      }
    case 'model_bad_reply':
      return meaning === 'bad_output' ? { ...allGood, model: 'unknown' } : { ...nothing, model: cool }
    case 'model_unreadable_answer':
      return { ...allGood, model: { kind: 'disable' } }
    case 'model_bad_request':
      return meaning === 'unknown_model' ? { ...allGood, model: { kind: 'disable' } } : allGood
    case 'model_content_filtered':
    case 'model_context_too_long':
      return allGood
    default:
      throw code satisfies never
  }
}

/**
 * What an error makes useless for the rest of a round: the whole endpoint, the model with each key, the key, or this key
 * with this model.
 */
export const findErrorScope = (error: ProviderError): HealthSubject => {
  const { code, unsent } = error
  if (unsent) return 'endpoint'
  if (isKeyError(error)) return 'key'
  return code === 'model_unauthorized' || code === 'model_rate_limited' ? 'key_model' : 'model'
}

/** Whether the vendor refused the request itself: it does so at each time, and its words say what to change. */
export const isRequestError = ({
  code,
  meaning,
  status,
}: Pick<ProviderError, 'code' | 'meaning' | 'status'>): boolean =>
  code === 'model_content_filtered' ||
  code === 'model_context_too_long' ||
  (code === 'model_bad_request' && meaning !== 'unknown_model' && status !== 404)

/** Whether it is this model alone that cannot do what was asked: one more of its vendor may, with more context, tools or eyes. */
export const isOfModel = ({ code, body = '' }: ProviderError): boolean =>
  code === 'model_context_too_long' || inability.test(body)
const inability =
  /n(?:o|[’'])t support\w{0,2} .{0,12}\b(?:tools?|functions?|images?|vision|audio)\b|\b(?:tools?`?|function calling|images?|vision) .{0,12}(?:is|are) not supported/i

/** Whether it is of no use to ask this model again in the same call. */
export const isFinalForModel = ({ code, meaning }: ProviderError): boolean =>
  /bad_request|context_too_long|unreadable/.test(code) || meaning === 'bad_output'

/** Whether a candidate may be asked again in the same call. */
export const isFinalForCandidate = (error: ProviderError): boolean => !error.retry || isFinalForModel(error)

/** The name of a candidate within a call. */
export const toCandidateKey = ({ model, key }: Pick<Candidate, 'model' | 'key'>): string =>
  JSON.stringify([model.id, key?.id ?? null])
