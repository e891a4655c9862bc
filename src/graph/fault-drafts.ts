import { z } from 'zod'
import type { ActionDraft } from '../state/checkpoint.ts'
import { cutText } from '../state/cut-text.ts'
import { errorCodes, MasonError, toMasonError } from '../state/errors.ts'
import type { Outcome } from '../state/ports.ts'
import { type Json, usageSchema } from '../state/runtime-state.ts'
import type { ReadonlyAction } from '../state/turn.ts'

const maxSummary = 500

/** A tool's fault is a result the model can act on, not the end of the run. */
export const faultDraft = (name: string, error: unknown): ActionDraft => {
  const { message, code } = toMasonError(error, 'node_failed')
  return {
    summary: cutText(`${name} failed: ${message}`, maxSummary),
    result: { text: `Error: ${message}`, is_error: true, code },
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
      error: { code, message, ...(remedy && { remedy }), ...(detail !== undefined && { detail: detail as Json }) },
    },
    ...(usage.success && { usage: usage.data }),
    relevance: 0,
    next: ['end'],
  }
}

const recordedSchema = z.object({
  code: z.enum(errorCodes),
  message: z.string(),
  remedy: z.string().optional(),
  detail: z.json().optional(),
})

/** The fault that an earlier worker wrote down, and died before it could end the run for it; null when there is none. */
export const recordedFailure = (actions: readonly ReadonlyAction[]): Outcome | null => {
  for (const { node, next, result } of actions) {
    if (next.length !== 1 || next[0] !== 'end') continue
    const error = recordedSchema.safeParse(result.error)
    if (error.success) return failure(new MasonError(error.data.code, error.data.message, error.data), node)
  }
  return null
}

/** A fault as the end of a run. */
export const failure = (
  { code, message, remedy, detail }: Pick<MasonError, 'code' | 'message' | 'remedy' | 'detail'>,
  node: string | null = null,
): Outcome => ({
  status: 'failed',
  reason: code,
  error: {
    code,
    message: remedy ? `${message}; ${remedy}` : message,
    ...(node && { node }),
    ...(detail !== undefined && { detail }),
  },
})
