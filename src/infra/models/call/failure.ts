import { MasonError } from '../../../state/errors.ts'
import type { Usage } from '../../../state/runtime-state.ts'
import type { Candidate, PassedOver } from '../call-ports.ts'
import type { KeyEntry } from '../ports.ts'
import type { Fault } from '../wire/faults.ts'
import { remedyOf } from './remedy.ts'
import { reasonOf, toldRemedyOf } from './told.ts'

/** One request that failed; what the vendor said is redacted. */
export type Tried = { candidate: Candidate; fault: Fault }

/**
 * What stands in `detail` of a model error. `usage` is what the failed requests are known to have cost. Key labels and
 * `place` are for admins: they stand only in the error's cause.
 */
export type ModelErrorDetail = {
  status?: number
  attempts: number
  usage: Usage
  retry_after_ms?: number
  /** Nothing was asked, because keys have reached their limits. */
  limited?: boolean
  /** What was tried or passed over, and why: of `no_model_available`. `code` null: it was not asked. */
  candidates?: Candidated[]
  place?: string
}

type Candidated = { model: string; key_label?: string | null; code: string | null; why: string }

/** An address for people: no password, no query. */
export const shownUrl = (baseUrl: string): string => {
  const url = new URL(baseUrl)
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** Takes the key out of a text, also when a server echoes it. Keys of under 4 characters are no secrets. */
export const withoutKey = (text: string, key: KeyEntry | null): string => {
  const secret = key?.secret?.reveal()
  return secret === undefined || secret.length < 4 ? text : text.replaceAll(secret, '[key]')
}

/**
 * The error of a call that one model and key could not answer for good, as a business may see it; its cause is the same
 * for admins, with addresses and all that the vendor said.
 */
export const failureOf = (
  { candidate: { model }, fault }: Tried,
  { attempts, usage, place }: { attempts: number; usage: Usage; place?: string | undefined },
): MasonError => {
  const after = attempts > 1 ? `, after ${attempts} attempts` : ''
  const detail: ModelErrorDetail = {
    ...(fault.status === undefined ? {} : { status: fault.status }),
    attempts,
    usage,
    ...(fault.retryAfterMs === undefined ? {} : { retry_after_ms: fault.retryAfterMs }),
  }
  const where = `${shownUrl(model.endpoint.base_url)}, model ${model.upstream_name}${after}`
  const cause = new MasonError(fault.code, `the model server ${fault.what} (${where})`, {
    remedy: remedyOf(fault, model),
    detail: place === undefined ? detail : { ...detail, place },
  })
  const told = `the model server ${reasonOf(fault, model)} (model ${model.name}${after})`
  return new MasonError(fault.code, told, { remedy: toldRemedyOf(fault, model), detail, cause })
}

type Left = {
  wanted: string
  tried: readonly Tried[]
  passedOver: readonly PassedOver[]
  attempts: number
  usage: Usage
  /** When the first of them may be tried again; null: nobody knows. */
  retryAfterMs: number | null
  limited: boolean
}

const mostShown = 20

/** The last word on each of them counts. */
const lastWords = ({ tried, passedOver }: Pick<Left, 'tried' | 'passedOver'>, to: 'admin' | 'business') => {
  const last = new Map<string, Candidated>()
  const isAdmin = to === 'admin'
  const note = (key_label: string | null, one: Candidated): void => {
    // two keys of a model that failed alike are one candidate to whoever knows no keys
    const name = JSON.stringify(isAdmin ? [one.model, key_label] : [one.model, one.code, one.why])
    last.set(name, isAdmin ? { ...one, key_label } : one)
  }
  const asked = new Set(
    tried.map(({ candidate: { model, key } }) => JSON.stringify([model.name, key?.label ?? null])),
  )
  const models = new Set(tried.map(({ candidate: { model } }) => model.name))
  // why another key of a model was not asked says nothing to whoever knows no keys
  const isSaid = (model: string, key_label: string | null): boolean =>
    isAdmin ? asked.has(JSON.stringify([model, key_label])) : models.has(model)
  for (const { model, key_label, why, told = why } of passedOver)
    if (!isSaid(model, key_label)) note(key_label, { model, code: null, why: isAdmin ? why : told })
  for (const { candidate, fault } of tried) {
    const { model, key } = candidate
    const why = `the model server ${isAdmin ? fault.what : reasonOf(fault, model)}`
    note(key?.label ?? null, { model: model.name, code: fault.code, why })
  }
  return [...last.values()]
}

const listOf = (candidates: readonly Candidated[]): string => {
  if (candidates.length === 0) return 'there is none'
  const shown = candidates
    .slice(0, mostShown)
    .map(
      ({ model, key_label, why }) => `${model}${key_label == null ? '' : ` with key "${key_label}"`}: ${why}`,
    )
  const more = candidates.length > mostShown ? `; and ${candidates.length - mostShown} more` : ''
  return `${shown.join('; ')}${more}`
}

/**
 * The one error of a call for which nobody is left: each candidate, and why it did not answer. As a business may see it;
 * its cause is the same for admins, key by key.
 */
export const nobodyLeft = (left: Left): MasonError => {
  const { wanted, attempts, usage, retryAfterMs, limited } = left
  const make = (to: 'admin' | 'business', remedy: string, cause?: MasonError): MasonError => {
    const candidates = lastWords(left, to)
    const detail: ModelErrorDetail = {
      attempts,
      usage,
      candidates,
      ...(limited && { limited }),
      ...(retryAfterMs === null ? {} : { retry_after_ms: Math.ceil(retryAfterMs) }),
    }
    const message = `no model is left to answer ${wanted}: ${listOf(candidates)}`
    return new MasonError('no_model_available', message, { remedy, detail, ...(cause && { cause }) })
  }
  const isNone = left.tried.length === 0 && left.passedOver.length === 0
  const remedy = isNone
    ? 'add a model for it, or a route, under /admin/v1'
    : 'run again later, or look at the keys, endpoints and routes under /admin/v1'
  return make('business', remedy, make('admin', remedy))
}
