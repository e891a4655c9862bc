import type { ActionDraft } from '../state/checkpoint.ts'
import { MasonError } from '../state/errors.ts'
import type { Json } from '../state/runtime-state.ts'
import { cutText } from '../state/text/cut-text.ts'

const maxContextLength = 4000
const maxSummaryLength = 200

/**
 * The arguments of this call. A call tool never runs without them.
 *
 * @example
 * ```ts
 * import { readCallInput, type ToolContext } from 'mason-runtime'
 *
 * const readCity = (context: ToolContext<never, { city: string }>): string => readCallInput(context).city
 * ```
 */
export const readCallInput = <Input>(context: { call: { input: Input } | null }): Input => {
  if (context.call) return context.call.input
  throw new MasonError('internal', 'a call tool ran without a call', { remedy: 'check its kinds' })
}

/**
 * A result: a summary for people, a text for the model whose start is the context, and `more` fields for programs.
 *
 * @example
 * ```ts
 * import { resultDraft } from 'mason-runtime'
 *
 * const draft = resultDraft('Found 3 orders', 'SO-1, SO-2, SO-3', { found: 3 })
 * ```
 */
export const resultDraft = (summary: string, text: string, more: Record<string, Json> = {}): ActionDraft => ({
  summary: cutText(summary, maxSummaryLength),
  result: { text, ...more },
  context: {
    type: 'text',
    content: cutText(text, maxContextLength),
    important: false,
    usage_type: 'analysis',
  },
  relevance: 0.5,
})

/**
 * An error the model can act on. It leaves no context: it has nothing for the answer.
 *
 * @example
 * ```ts
 * import { errorDraft } from 'mason-runtime'
 *
 * const draft = errorDraft('Unknown city', 'There is no city of this name. Ask for the country.')
 * ```
 */
export const errorDraft = (summary: string, text: string): ActionDraft => ({
  summary: cutText(summary, maxSummaryLength),
  result: { text, is_error: true },
  context: null,
  relevance: 0.5,
})
