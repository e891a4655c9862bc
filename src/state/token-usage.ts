import type { Usage } from './runtime-state.ts'

/**
 * Zero tokens.
 *
 * @example
 * ```ts
 * import { noUsage, type Usage } from 'mason-runtime'
 *
 * const usage: Usage = { ...noUsage, total_tokens: 12 }
 * ```
 */
export const noUsage: Usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }

/** Sum of two counts, in tokens. */
export const addUsage = (a: Usage, b: Usage): Usage => ({
  prompt_tokens: a.prompt_tokens + b.prompt_tokens,
  completion_tokens: a.completion_tokens + b.completion_tokens,
  total_tokens: a.total_tokens + b.total_tokens,
})

/** What was spent before an error, where its detail says it. */
export const readSpentUsage = (error: unknown): Usage =>
  (error as { detail?: { usage?: Usage } | undefined }).detail?.usage ?? noUsage

/** The sum of usages. */
export const sumUsage = (all: readonly Usage[]): Usage => all.reduce(addUsage, noUsage)
