import { MasonError } from '../../../state/errors.ts'
import type { Usage } from '../../../state/runtime-state.ts'
import type { Fault, ModelErrorCode } from './faults.ts'

/** What stands in `detail` of a model error. `usage` is what the failed requests are known to have cost. */
export type ModelErrorDetail = {
  status?: number
  attempts: number
  usage: Usage
  retry_after_ms?: number
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
  model_context_too_long: 'shorten the prompt or the files, or use a model with a larger context window',
}

/** The base URL for people: no password, no query. */
export const shownUrl = (baseUrl: string): string => {
  const url = new URL(baseUrl)
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** Takes the key out of a text, also when a server echoes it. Keys of under 4 characters are no secrets. */
const withoutKey = (text: string, apiKey: string | undefined): string =>
  apiKey === undefined || apiKey.length < 4 ? text : text.replaceAll(apiKey, '[key]')

type Context = { baseUrl: string; model: string; apiKey: string | undefined; attempts: number; usage: Usage }

/** The typed error of a call that failed for good. */
export const failureOf = (fault: Fault, context: Context): MasonError => {
  const { baseUrl, model, apiKey, attempts, usage } = context
  const after = attempts > 1 ? `, after ${attempts} attempts` : ''
  const message = `the model server ${fault.what} (${shownUrl(baseUrl)}, model ${model}${after})`
  const detail: ModelErrorDetail = {
    ...(fault.status === undefined ? {} : { status: fault.status }),
    attempts,
    usage,
    ...(fault.retryAfterMs === undefined ? {} : { retry_after_ms: fault.retryAfterMs }),
  }
  return new MasonError(fault.code, withoutKey(message, apiKey), {
    remedy: fault.remedy ?? remedies[fault.code],
    detail,
  })
}
