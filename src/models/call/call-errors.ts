import { MasonError } from '../../state/errors.ts'
import type { Usage } from '../../state/runtime-state.ts'
import type { Candidate, SkippedCandidate } from '../ports/call-ports.ts'
import type { KeyEntry } from '../ports/model-ports.ts'
import type { ProviderError } from '../transport/provider-errors.ts'
import { describePublicReason, findPublicRemedy, findRemedy } from './error-messages.ts'

/** One provider request that failed; the vendor's words are redacted. */
export type FailedRequest = { candidate: Candidate; error: ProviderError }

/**
 * The `detail` of a model error. `usage` is the known usage of the failed requests. Key labels and `place` are for
 * admins and appear only in the error's cause.
 */
export type ModelErrorDetail = {
  status?: number
  attempts: number
  usage: Usage
  retry_after_ms?: number
  /** A call after so many milliseconds may be answered; absent: waiting does not help. */
  wait_ms?: number
  /** All that was left are keys at their limits, ours or the vendor's. */
  limited?: boolean
  /** Of `no_model_available`: each candidate and why it did not answer. `code` null: no request was sent to it. */
  candidates?: CandidateDetail[]
  place?: string
  /** It was to make a job, and the vendor may have taken it. */
  may_have_job?: true
}

type CandidateDetail = { model: string; key_label?: string | null; code: string | null; why: string }

/** A URL without password and query, for messages. */
export const toPublicUrl = (baseUrl: string): string => {
  const url = new URL(baseUrl)
  return `${url.origin}${url.pathname}`.replace(/(?<!\/)\/+$/, '')
}

/** Removes the key from a text, also when a server echoes it. Keys of under 4 characters are not secrets. */
export const redactKey = (text: string, key: KeyEntry | null): string => {
  const secret = key?.secret?.reveal()
  return secret === undefined || secret.length < 4 ? text : text.replaceAll(secret, '[key]')
}

/**
 * The error of a call that its only candidate could not answer, as a business may see it. Its cause is the same error
 * for admins, with addresses and the vendor's words.
 */
export const createCallError = (
  { candidate: { model }, error }: FailedRequest,
  options: {
    attempts: number
    usage: Usage
    place?: string | undefined
    mayHaveJob?: boolean
    waitMs?: number | undefined
  },
): MasonError => {
  const { attempts, usage, place, mayHaveJob, waitMs } = options
  const after = attempts > 1 ? `, after ${attempts} attempts` : ''
  const detail: ModelErrorDetail = {
    ...(error.status === undefined ? {} : { status: error.status }),
    attempts,
    usage,
    ...(error.retryAfterMs === undefined ? {} : { retry_after_ms: error.retryAfterMs }),
    ...(mayHaveJob && { may_have_job: true }),
    ...(waitMs !== undefined && { wait_ms: waitMs }),
  }
  const where = `${toPublicUrl(model.endpoint.base_url)}, model ${model.upstream_name}${after}`
  const cause = new MasonError(error.code, `the model server ${error.what} (${where})`, {
    remedy: findRemedy(error, model),
    detail: place === undefined ? detail : { ...detail, place },
  })
  const message = `the model server ${describePublicReason(error, model)} (model ${model.name}${after})`
  return new MasonError(error.code, message, { remedy: findPublicRemedy(error, model), detail, cause })
}

type NoModelDetail = {
  selector: string
  tried: readonly FailedRequest[]
  passedOver: readonly SkippedCandidate[]
  attempts: number
  usage: Usage
  /** When the first of them may be tried again; null: unknown. */
  retryAfterMs: number | null
  /** See `wait_ms` of the detail. */
  waitMs: number | undefined
  limited: boolean
}

const maxListed = 20

/** The last result of each candidate. */
const summarizeCandidates = (
  { tried, passedOver }: Pick<NoModelDetail, 'tried' | 'passedOver'>,
  to: 'admin' | 'business',
) => {
  const last = new Map<string, CandidateDetail>()
  const isAdmin = to === 'admin'
  const note = (key_label: string | null, one: CandidateDetail): void => {
    // a business does not see keys: two keys of a model that failed alike are one candidate
    const name = JSON.stringify(isAdmin ? [one.model, key_label] : [one.model, one.code, one.why])
    last.set(name, isAdmin ? { ...one, key_label } : one)
  }
  const requested = new Set(
    tried.map(({ candidate: { model, key } }) => JSON.stringify([model.name, key?.label ?? null])),
  )
  const models = new Set(tried.map(({ candidate: { model } }) => model.name))
  // a business does not see keys: why another key of a model was skipped is of no use to it
  const isReported = (model: string, key_label: string | null): boolean =>
    isAdmin ? requested.has(JSON.stringify([model, key_label])) : models.has(model)
  for (const { model, key_label, reason, publicReason = reason } of passedOver)
    if (!isReported(model, key_label))
      note(key_label, { model, code: null, why: isAdmin ? reason : publicReason })
  for (const { candidate, error } of tried) {
    const { model, key } = candidate
    const why = `the model server ${isAdmin ? error.what : describePublicReason(error, model)}`
    note(key?.label ?? null, { model: model.name, code: error.code, why })
  }
  return [...last.values()]
}

const formatCandidates = (candidates: readonly CandidateDetail[]): string => {
  if (candidates.length === 0) return 'there is none'
  const listed = candidates
    .slice(0, maxListed)
    .map(
      ({ model, key_label, why }) => `${model}${key_label == null ? '' : ` with key "${key_label}"`}: ${why}`,
    )
  const more = candidates.length > maxListed ? `; and ${candidates.length - maxListed} more` : ''
  return `${listed.join('; ')}${more}`
}

/**
 * The error of a call that no candidate answered: each candidate, and why. As a business may see it; its cause is the
 * same error for admins, key by key.
 */
export const createNoModelError = (failure: NoModelDetail): MasonError => {
  const { selector, attempts, usage, retryAfterMs, waitMs, limited } = failure
  const make = (to: 'admin' | 'business', remedy: string, cause?: MasonError): MasonError => {
    const candidates = summarizeCandidates(failure, to)
    const detail: ModelErrorDetail = {
      attempts,
      usage,
      candidates,
      ...(limited && { limited }),
      ...(retryAfterMs === null ? {} : { retry_after_ms: Math.ceil(retryAfterMs) }),
      ...(waitMs !== undefined && { wait_ms: waitMs }),
    }
    const message = `no model is left to answer ${selector}: ${formatCandidates(candidates)}`
    return new MasonError('no_model_available', message, { remedy, detail, ...(cause && { cause }) })
  }
  const isNone = failure.tried.length === 0 && failure.passedOver.length === 0
  const remedy = isNone
    ? 'add a model for it, or a route, under /admin/v1'
    : 'run again later, or check the keys, endpoints and routes under /admin/v1'
  return make('business', remedy, make('admin', remedy))
}
