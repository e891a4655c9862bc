import { cutText } from './text/cut-text.ts'
import type { OpenTodo } from './todos.ts'

/** How the answer of a run ended: whole, cut at the output limit of its model, or for a reason that is not known. */
export type AnswerReason = 'answered' | 'length' | 'unknown'

/** How a run ends; the `end` action and the run's row have it. */
export type Outcome =
  | { status: 'completed'; reason: AnswerReason | 'steps' | 'tokens' | 'cost' | 'time' | 'no_progress' }
  | {
      status: 'failed'
      reason: string
      error: { code: string; message: string; node?: string; detail?: unknown }
    }
  | { status: 'cancelled'; reason: string }

const limits: Record<string, string> = {
  steps: 'the limit of steps was reached',
  tokens: 'the limit of tokens was reached',
  cost: 'the limit of cost was reached',
  time: 'the time was up',
  no_progress: 'the same step kept coming back without anything new',
  length: "the answer was cut at the model's output limit",
  unknown: 'the model ended its answer for a reason that is not known',
}

/** Why a run ended before its answer, as a person says it. */
export const describeLimit = (reason: string): string => limits[reason] ?? reason

/** The result of an `end` action; `open_todos`, and `payments` that go on, only where there are some. */
export const toEndResult = (
  { status, reason }: Outcome,
  open_todos: OpenTodo[],
  payments: readonly string[],
) => ({
  status,
  reason,
  ...(open_todos.length > 0 && { open_todos }),
  ...(payments.length > 0 && { payments: [...payments] }),
})

/** The summary of an `end` action, with the payments that go on. */
export const summarizeOutcome = (outcome: Outcome, payments: readonly string[]): string => {
  const summary = summarizeEnd(outcome)
  if (payments.length === 0) return summary
  return `${summary}. These payments were sent before and go on: ${cutText(payments.join(', '), 1000)}`
}

const summarizeEnd = (outcome: Outcome): string => {
  if (outcome.status === 'completed')
    return outcome.reason === 'answered'
      ? 'Answered'
      : `Ended with what there is: ${describeLimit(outcome.reason)}`
  if (outcome.status === 'cancelled') return `Cancelled${outcome.reason ? `: ${outcome.reason}` : ''}`
  return cutText(`Failed: ${outcome.error.message}`, 1000)
}
