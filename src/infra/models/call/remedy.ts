import type { ModelEntry } from '../ports.ts'
import type { Fault, ModelErrorCode } from '../wire/faults.ts'

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

/** What an admin can do about a fault. */
export const remedyOf = (fault: Fault, model: ModelEntry): string =>
  inRegistry(fault.remedy ?? remedies[fault.code], model)
