import type { Usage } from '../../state/runtime-state.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import type { MeteredUsage } from './ports.ts'

export const noMetered: MeteredUsage = { ...noUsage, cached_tokens: 0, reasoning_tokens: 0 }

/** Sum of two counts, in tokens. */
export const addMetered = (a: MeteredUsage, b: MeteredUsage): MeteredUsage => ({
  ...addUsage(a, b),
  cached_tokens: a.cached_tokens + b.cached_tokens,
  reasoning_tokens: a.reasoning_tokens + b.reasoning_tokens,
})

/** As actions keep it. */
export const plainUsage = ({ prompt_tokens, completion_tokens, total_tokens }: MeteredUsage): Usage => ({
  prompt_tokens,
  completion_tokens,
  total_tokens,
})
