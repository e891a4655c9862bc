import type { ActionDraft } from '../state/checkpoint.ts'
import { cutText } from '../state/cut-text.ts'
import { toMasonError } from '../state/errors.ts'
import type { Effect } from '../state/ports.ts'
import { type Json, usageSchema } from '../state/runtime-state.ts'

const maxSummary = 500

/**
 * A tool's fault is a result the model can act on, not the end of the run. Where its side effect took place all the same
 * the model must hear it, or it would order a second one.
 */
export const thrownDraft = (name: string, error: unknown, effect: Effect | null): ActionDraft => {
  const { message, code, remedy } = toMasonError(error, 'node_failed')
  const text = `Error: ${remedy ? `${message}; ${remedy}` : message}`
  const done = effect
    ? `\nThe side effect took place all the same; do not repeat it. The provider answered: ${effect.response}`
    : ''
  return {
    summary: cutText(`${name} failed: ${message}`, maxSummary),
    result: { text: text + done, is_error: true, code },
    relevance: 0,
  }
}

/** What a node that failed leaves behind: the reason, and the tokens it had spent. */
export const failureDraft = (name: string, error: unknown): ActionDraft => {
  const { message, code, remedy, detail } = toMasonError(error, 'node_failed')
  const usage = usageSchema.safeParse((detail as { usage?: unknown } | undefined)?.usage)
  return {
    summary: cutText(`${name} failed: ${message}`, maxSummary),
    result: {
      error: {
        code,
        message,
        ...(remedy && { remedy }),
        ...(detail !== undefined && { detail: detail as Json }),
      },
    },
    ...(usage.success && { usage: usage.data }),
    relevance: 0,
    next: ['end'],
  }
}
