import { cutText } from './cut-text.ts'
import type { Outcome } from './ports.ts'

const limits: Record<string, string> = {
  steps: 'the limit of steps was reached',
  tokens: 'the limit of tokens was reached',
  cost: 'the limit of cost was reached',
  time: 'the time was up',
  no_progress: 'the same step kept coming back without anything new',
}

/** Why a run ended before its answer, as a person says it. */
export const limitText = (reason: string): string => limits[reason] ?? reason

/** The summary of an `end` action, whoever lays it. */
export const outcomeSummary = (outcome: Outcome): string => {
  if (outcome.status === 'completed')
    return outcome.reason === 'answered'
      ? 'Answered'
      : `Ended with what there is: ${limitText(outcome.reason)}`
  if (outcome.status === 'cancelled') return `Cancelled${outcome.reason ? `: ${outcome.reason}` : ''}`
  return cutText(`Failed: ${outcome.error.message}`, 1000)
}
