import type { MeteredUsage } from '../models/ports.ts'

/** Tokens as a vendor counted them; null: it did not say. */
export type Counts = { [Name in keyof MeteredUsage]: number | null }

export const countNames = [
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'cached_tokens',
  'reasoning_tokens',
] as const satisfies readonly (keyof MeteredUsage)[]

export const noCounts: Counts = {
  prompt_tokens: null,
  completion_tokens: null,
  total_tokens: null,
  cached_tokens: null,
  reasoning_tokens: null,
}

/** A whole number of tokens; null for what cannot be one, as vendors send it when they miscount. */
export const countOf = (value: unknown): number | null => {
  if (typeof value !== 'number' || !(value >= 0)) return null
  const count = Math.round(value)
  return Number.isSafeInteger(count) ? count : null
}

/** The last count of each kind. A total does not outlive the parts it was the sum of. */
export const mergeCounts = (before: Counts, after: Counts): Counts => {
  if (after === noCounts) return before
  const partsChange = after.prompt_tokens !== null || after.completion_tokens !== null
  return {
    prompt_tokens: after.prompt_tokens ?? before.prompt_tokens,
    completion_tokens: after.completion_tokens ?? before.completion_tokens,
    total_tokens: after.total_tokens ?? (partsChange ? null : before.total_tokens),
    cached_tokens: after.cached_tokens ?? before.cached_tokens,
    reasoning_tokens: after.reasoning_tokens ?? before.reasoning_tokens,
  }
}

/** Completes what was not said from what was; null when nothing was. */
export const usageOf = (counts: Counts): MeteredUsage | null => {
  const { prompt_tokens, completion_tokens, total_tokens: total } = counts
  if (prompt_tokens === null && completion_tokens === null && total === null) return null
  const prompt = prompt_tokens ?? Math.max(0, (total ?? 0) - (completion_tokens ?? 0))
  const completion = completion_tokens ?? Math.max(0, (total ?? 0) - prompt)
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total === null || total === 0 ? prompt + completion : total,
    cached_tokens: Math.min(counts.cached_tokens ?? 0, prompt),
    reasoning_tokens: Math.min(counts.reasoning_tokens ?? 0, completion),
  }
}
