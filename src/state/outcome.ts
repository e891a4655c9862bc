import { cutText } from './text/cut-text.ts'
import type { TextLanguage } from './text/text-language.ts'
import type { OpenTodo } from './todos.ts'

/** How the answer of a run ended: whole, cut at a limit or by a filter, or for a reason that is not known. */
export type AnswerReason = 'answered' | 'length' | 'content_filter' | 'unknown'

/** How a run ends; the `end` action and the run's row have it. */
export type Outcome =
  | { status: 'completed'; reason: AnswerReason | 'steps' | 'tokens' | 'cost' | 'time' | 'no_progress' }
  | {
      status: 'failed'
      reason: string
      error: { code: string; message: string; node?: string; detail?: unknown }
    }
  | { status: 'cancelled'; reason: string }

const limits: Record<string, Record<TextLanguage, string>> = {
  steps: { en: 'the limit of steps was reached', zh: '已达到步骤数上限' },
  tokens: { en: 'the limit of tokens was reached', zh: '已达到 token 用量上限' },
  cost: { en: 'the limit of cost was reached', zh: '已达到费用上限' },
  time: { en: 'the time was up', zh: '时间已用完' },
  no_progress: {
    en: 'the same step kept coming back without anything new',
    zh: '同一步骤反复出现，没有新的结果',
  },
  length: { en: "the answer was cut at the model's output limit", zh: '答案因达到模型的输出上限而被截断' },
  content_filter: { en: 'a content filter cut the answer', zh: '答案被内容过滤器截断' },
  unknown: {
    en: 'the model ended its answer for a reason that is not known',
    zh: '模型因未知原因结束了回答',
  },
}

/** Why a run ended before its answer, as a person says it. */
export const describeLimit = (reason: string, language: TextLanguage = 'en'): string =>
  limits[reason]?.[language] ?? reason

/** What goes on although its run ends, by its kind: their ids, never none. */
export type OngoingWork = Readonly<Record<string, readonly string[]>>

/** The result of an `end` action; `open_todos`, and what goes on, only where there is some. */
export const toEndResult = ({ status, reason }: Outcome, open_todos: OpenTodo[], ongoing: OngoingWork) => ({
  status,
  reason,
  ...(open_todos.length > 0 && { open_todos }),
  ...Object.fromEntries(Object.entries(ongoing).map(([what, ids]) => [what, [...ids]])),
})

/** The summary of an `end` action, with what goes on. */
export const summarizeOutcome = (outcome: Outcome, ongoing: OngoingWork): string =>
  [
    summarizeEnd(outcome),
    ...Object.entries(ongoing).map(
      ([what, ids]) => `These ${what} were sent before and go on: ${cutText(ids.join(', '), 1000)}`,
    ),
  ].join('. ')

const summarizeEnd = (outcome: Outcome): string => {
  if (outcome.status === 'completed')
    return outcome.reason === 'answered'
      ? 'Answered'
      : `Ended with what there is: ${describeLimit(outcome.reason)}`
  if (outcome.status === 'cancelled') return `Cancelled${outcome.reason ? `: ${outcome.reason}` : ''}`
  return cutText(`Failed: ${outcome.error.message}`, 1000)
}
