import type { MeteredUsage } from '../ports/model-ports.ts'

/** Token counts of a vendor; null where it did not report one. */
export type TokenCounts = { [Name in keyof MeteredUsage]: number | null }

/** The vendor reported no counts. */
export const noTokenCounts: TokenCounts = {
  prompt_tokens: null,
  completion_tokens: null,
  total_tokens: null,
  cached_tokens: null,
  reasoning_tokens: null,
}
/** The names of the counts, in the order of reports. */
const tokenCountNames = Object.keys(noTokenCounts) as (keyof TokenCounts)[]

/** A whole number of tokens; null for any other value, which vendors send when they miscount. */
const readTokenCount = (value: unknown): number | null => {
  if (typeof value !== 'number' || !(value >= 0)) return null
  const count = Math.round(value)
  return Number.isSafeInteger(count) ? count : null
}

/** The counts whose values `read` gives. */
export const readTokenCounts = (read: (name: keyof TokenCounts) => unknown): TokenCounts => {
  const counts = { ...noTokenCounts }
  for (const name of tokenCountNames) counts[name] = readTokenCount(read(name))
  return counts
}

/** The latest count of each kind: a placeholder of zero replaces none. A new count of a part drops an earlier total. */
export const mergeTokenCounts = (before: TokenCounts, after: TokenCounts): TokenCounts => {
  const merged = { ...before }
  for (const name of tokenCountNames) merged[name] = after[name] || (before[name] ?? after[name])
  if (!after.total_tokens && (after.prompt_tokens || after.completion_tokens)) merged.total_tokens = null
  return merged
}

/**
 * Derives missing counts from the reported ones; null when none was reported. Some vendors (xAI) count reasoning apart from
 * the completion: their total has both.
 */
export const toMeteredUsage = (counts: TokenCounts): MeteredUsage | null => {
  const { prompt_tokens, completion_tokens, total_tokens: total } = counts
  if (prompt_tokens === null && completion_tokens === null && total === null) return null
  const prompt = prompt_tokens ?? Math.max(0, (total ?? 0) - (completion_tokens ?? 0))
  const reasoning = counts.reasoning_tokens ?? 0
  const reported = completion_tokens ?? Math.max(0, (total ?? 0) - prompt)
  const completion = total === prompt + reported + reasoning ? reported + reasoning : reported
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total || prompt + completion,
    cached_tokens: Math.min(counts.cached_tokens ?? 0, prompt),
    reasoning_tokens: Math.min(reasoning, completion),
  }
}
