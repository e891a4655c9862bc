import type { ModelEntry } from '../ports.ts'
import type { Fault, ModelErrorCode } from '../wire/faults.ts'
import { remedyOf } from './remedy.ts'

/**
 * What a business is told of a fault: the alias and a reason, in our words. What vendors and networks say may name keys,
 * accounts, addresses and upstream models; it stands in the log and in the trials of admins.
 */

/** The vendor refused what was asked, not how: any other candidate would meet it too, and its own words tell what to change. */
export const isOfRequest = ({ code, status }: Pick<Fault, 'code' | 'status'>): boolean =>
  code === 'model_content_filtered' ||
  code === 'model_context_too_long' ||
  (code === 'model_bad_request' && status !== 404)

const reasons: Record<ModelErrorCode, string> = {
  model_unauthorized: 'refused our key',
  model_rate_limited: 'asks to be left alone for now',
  model_unavailable: 'cannot be reached, or broke off',
  model_timeout: 'did not answer in time',
  model_bad_reply: 'sent what is no answer of its protocol',
  model_bad_request: 'does not know this model',
  model_content_filtered: 'withheld its reply',
  model_context_too_long: 'takes no prompt of this length',
  model_unreadable_answer: 'sent an answer that could not be read',
}

/** A phrase that follows "the model server". */
export const reasonOf = (fault: Fault, { name, upstream_name }: ModelEntry): string => {
  if (isOfRequest(fault)) return fault.what.replaceAll(upstream_name, name)
  return `${fault.status === undefined ? '' : `answered ${fault.status}: `}${reasons[fault.code]}`
}

/** What a business can do; models of the settings are those of whoever set them, and are mended there. */
export const toldRemedyOf = (fault: Fault, model: ModelEntry): string =>
  isOfRequest(fault) || model.id.startsWith('mod_settings')
    ? remedyOf(fault, model)
    : 'run again later, or use another model; whoever runs this Mason finds the whole reason in its log'
