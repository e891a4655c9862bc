import type { MeteredUsage } from '../ports/model-ports.ts'

/** Counts the model calls of this process, for /metrics. */
export type CallCounts = {
  /** One request to a vendor, which took `ms`; `code` is `ok` or the code of its error. */
  modelRequest(about: { vendor: string; model: string; code: string }, usage: MeteredUsage, ms: number): void
  /** A call that a candidate other than the first one answered. */
  fallback(): void
}
