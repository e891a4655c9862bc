import type { ActionDraft } from '../state/checkpoint.ts'
import { cutText } from '../state/cut-text.ts'
import { MasonError } from '../state/errors.ts'
import type { Json } from '../state/runtime-state.ts'

/** What call tools lay down: a summary for people, `result.text` for the model, and its start as context. */

const maxContextLength = 4000
const maxSummaryLength = 200

/** What the planner asked of this call. Call tools are never run without one. */
export const callInput = <Input>(context: { call: { input: Input } | null }): Input => {
  if (context.call) return context.call.input
  throw new MasonError('internal', 'a call tool ran without a call', { remedy: 'check its kinds' })
}

/** A result without error; `more` is what programs want to read beside the text. */
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

/** A fault the model can act on. It leaves no context: there is nothing in it for the answer. */
export const faultDraft = (summary: string, text: string): ActionDraft => ({
  summary: cutText(summary, maxSummaryLength),
  result: { text, is_error: true },
  context: null,
  relevance: 0.5,
})
