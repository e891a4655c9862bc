import { MasonError } from '../../../state/errors.ts'
import type { Usage } from '../../../state/runtime-state.ts'
import type { Candidate, PassedOver } from '../call-ports.ts'
import type { Fault, ModelErrorCode } from '../openai/faults.ts'
import type { KeyEntry, ModelEntry } from '../ports.ts'

/** One request that failed; what the vendor said is redacted. */
export type Tried = { candidate: Candidate; fault: Fault }

/** What stands in `detail` of a model error. `usage` is what the failed requests are known to have cost. */
export type ModelErrorDetail = {
  status?: number
  attempts: number
  usage: Usage
  retry_after_ms?: number
  /** Nothing was asked, because keys have reached their limits. */
  limited?: boolean
  /** What was tried or passed over, and why: of `no_model_available`. `code` null: it was not asked. */
  candidates?: { model: string; key_label: string | null; code: string | null; why: string }[]
  place?: string
}

const remedies: Record<ModelErrorCode, string> = {
  model_unauthorized: 'check OPENAI_API_KEY, and that it may use this model',
  model_rate_limited: 'wait and run again, lower WORKER_CONCURRENCY, or raise the limits of the key',
  model_unavailable: 'check OPENAI_BASE_URL and that the server is up, then run again',
  model_timeout: 'run again, or give the model more time',
  model_bad_reply:
    'check that OPENAI_BASE_URL is the address of an OpenAI-compatible API (it usually ends in /v1)',
  model_bad_request: 'check OPENAI_MODEL, and that the server takes what was asked',
  model_content_filtered: 'word the prompt in another way, or use another model',
  model_unreadable_answer:
    'mend the response format of this model; its unread answers are kept for the admin',
  model_context_too_long: 'shorten the prompt or the files, or use a model with a larger context window',
}

/** Models that follow the settings are mended there, all others in the registry. */
const inRegistry = (remedy: string, { id }: ModelEntry): string =>
  id.startsWith('mod_settings')
    ? remedy
    : remedy
        .replaceAll('OPENAI_API_KEY', 'the key of this vendor')
        .replaceAll('OPENAI_BASE_URL', 'the base_url of the endpoint')
        .replaceAll('OPENAI_MODEL', 'the upstream_name of the model')

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

export const remedyOf = (fault: Fault, model: ModelEntry): string =>
  inRegistry(fault.remedy ?? remedies[fault.code], model)

/** The error of a call that one model and key could not answer for good. */
export const failureOf = (
  { candidate: { model }, fault }: Tried,
  { attempts, usage, place }: { attempts: number; usage: Usage; place?: string | undefined },
): MasonError => {
  const after = attempts > 1 ? `, after ${attempts} attempts` : ''
  const where = `${shownUrl(model.endpoint.base_url)}, model ${model.upstream_name}${after}`
  const detail: ModelErrorDetail = {
    ...(fault.status === undefined ? {} : { status: fault.status }),
    attempts,
    usage,
    ...(fault.retryAfterMs === undefined ? {} : { retry_after_ms: fault.retryAfterMs }),
    ...(place === undefined ? {} : { place }),
  }
  return new MasonError(fault.code, `the model server ${fault.what} (${where})`, {
    remedy: remedyOf(fault, model),
    detail,
  })
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

/** The one error of a call for which nobody is left: each candidate, and why it did not answer. */
export const nobodyLeft = ({
  wanted,
  tried,
  passedOver,
  attempts,
  usage,
  retryAfterMs,
  limited,
}: Left): MasonError => {
  // the last word on each of them counts
  const last = new Map<string, NonNullable<ModelErrorDetail['candidates']>[number]>()
  for (const { model, key_label, why } of passedOver)
    last.set(JSON.stringify([model, key_label]), { model, key_label, code: null, why })
  for (const { candidate, fault } of tried) {
    const { model, key } = candidate
    const why = `the model server ${fault.what}`
    const key_label = key?.label ?? null
    last.set(JSON.stringify([model.name, key_label]), { model: model.name, key_label, code: fault.code, why })
  }
  const candidates = [...last.values()]
  const shown = candidates
    .slice(0, mostShown)
    .map(
      ({ model, key_label, why }) =>
        `${model}${key_label === null ? '' : ` with key "${key_label}"`}: ${why}`,
    )
  const more = candidates.length > mostShown ? `; and ${candidates.length - mostShown} more` : ''
  const why = candidates.length === 0 ? 'there is none' : `${shown.join('; ')}${more}`
  const detail: ModelErrorDetail = {
    attempts,
    usage,
    candidates,
    ...(limited && { limited }),
    ...(retryAfterMs === null ? {} : { retry_after_ms: Math.ceil(retryAfterMs) }),
  }
  return new MasonError('no_model_available', `no model is left to answer ${wanted}: ${why}`, {
    remedy:
      candidates.length === 0
        ? 'add a model for it, or a route, under /admin/v1'
        : 'run again later, or look at the keys, endpoints and routes under /admin/v1',
    detail,
  })
}
