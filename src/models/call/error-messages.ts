import type { ModelEntry } from '../ports/model-ports.ts'
import type { ErrorMeaning } from '../transport/error-table.ts'
import type { ModelErrorCode, ProviderError } from '../transport/provider-errors.ts'
import { isRequestError } from './error-verdicts.ts'

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
    'fix the response format of this model; its unreadable answers are stored for the admin',
  model_context_too_long: 'shorten the prompt or the files, or use a model with a larger context window',
}

/** Models of the settings are fixed in the settings, all others in the registry. */
const toRegistryTerms = (remedy: string, { id }: ModelEntry): string =>
  id.startsWith('mod_settings')
    ? remedy
    : remedy
        .replaceAll('OPENAI_API_KEY', 'the key of this vendor')
        .replaceAll('OPENAI_BASE_URL', 'the base_url of the endpoint')
        .replaceAll('OPENAI_MODEL', 'the upstream_name of the model')

/** What an admin can do about an error. */
export const findRemedy = (error: ProviderError, model: ModelEntry): string =>
  toRegistryTerms(error.remedy ?? remedies[error.code], model)

const reasons: Record<ModelErrorCode, string> = {
  model_unauthorized: 'refused our key',
  model_rate_limited: 'limits our rate of requests for now',
  model_unavailable: 'cannot be reached, or broke off',
  model_timeout: 'did not answer in time',
  model_bad_reply: 'sent a reply that its protocol does not define',
  model_bad_request: 'does not know this model',
  model_content_filtered: 'withheld its reply',
  model_context_too_long: 'takes no prompt of this length',
  model_unreadable_answer: 'sent an answer that could not be read',
}

/** Where the meaning says more than the code. */
const reasonsByMeaning: Partial<Record<ErrorMeaning, string>> = {
  no_balance: 'the account of our key has no balance or quota left',
  bad_output: 'could not read what the model wrote',
  unknown_model: 'does not know this model',
}

const joinsBefore = /(?:[\p{Script=Latin}\p{N}_-]|[\p{Script=Latin}\p{N}_][.'’])$/u
const joinsAfter = /^(?:[\p{Script=Latin}\p{N}_-]|(?!['’]s(?!\p{L}))[.:/@'’][\p{Script=Latin}\p{N}_])/u

/** A name as a whole word: `gpt-4` is not in `gpt-4o` or `gpt-4.1`, `m` not in `I'm`, and `command` not in `commands`. */
const replaceName = (text: string, name: string, alias: string): string => {
  let replaced = ''
  let from = 0
  for (let at = text.indexOf(name); at >= 0 && name !== ''; at = text.indexOf(name, at + name.length)) {
    const end = at + name.length
    const isPart =
      joinsBefore.test(text.slice(Math.max(0, at - 2), at)) || joinsAfter.test(text.slice(end, end + 3))
    replaced += text.slice(from, at) + (isPart ? name : alias)
    from = end
  }
  return replaced + text.slice(from)
}

/**
 * The reason of an error for a business, after "the model server". The words of vendors and networks may name keys,
 * accounts, addresses and upstream models; only the log and the tests of admins have them.
 */
export const describePublicReason = (error: ProviderError, { name, upstream_name }: ModelEntry): string => {
  if (isRequestError(error)) return replaceName(error.what, upstream_name, name)
  const status = error.status === undefined ? '' : `answered ${error.status}`
  // the words of a page are those of a gateway, without addresses and ids
  if (error.page !== undefined) return `${status || 'answered'} with a web page: "${error.page}"`
  const reason = (error.meaning && reasonsByMeaning[error.meaning]) ?? reasons[error.code]
  return status === '' ? reason : `${status}: ${reason}`
}

/** What a business can do. Models of the settings belong to the person who set them, who can fix them there. */
export const findPublicRemedy = (error: ProviderError, model: ModelEntry): string =>
  isRequestError(error) || model.id.startsWith('mod_settings')
    ? findRemedy(error, model)
    : 'run again later, or use another model; the log of this Mason has the whole reason'
