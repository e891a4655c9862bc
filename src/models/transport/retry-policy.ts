/** `attempts` is the most requests of a call to one candidate; waits grow from `baseMs` to `maxMs`. */
export type RetryPolicy = { attempts: number; baseMs: number; maxMs: number }

/** The most requests of one call. */
export const maxRequests = 8

/** Exponential backoff with full jitter: a random time from 0 to the doubled limit. `retries` counts from 1. */
export const computeBackoffMs = (
  { baseMs, maxMs }: RetryPolicy,
  retries: number,
  random: () => number,
): number => random() * Math.min(maxMs, baseMs * 2 ** Math.min(retries - 1, 30))
