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

const parseMilliseconds = (value: string | null, unit: number): number | undefined => {
  if (value === null || value.trim() === '') return undefined
  const number = Number(value)
  return Number.isFinite(number) && number >= 0 ? number * unit : undefined
}

type Headers = { get(name: string): string | null }

/** The longest wait of a day, whatever the server asks for. */
const maxRetryAfterMs = 86_400_000

/** The wait of `Retry-After` (seconds or a date) or OpenAI's `retry-after-ms`, at most a day. */
export const readRetryAfterMs = (headers: Headers, now: Date): number | undefined => {
  const ms = readDelayMs(headers, now)
  return ms === undefined ? undefined : Math.min(ms, maxRetryAfterMs)
}

const readDelayMs = (headers: Headers, now: Date): number | undefined => {
  const exact = parseMilliseconds(headers.get('retry-after-ms'), 1)
  if (exact !== undefined) return exact
  const value = headers.get('retry-after')
  const seconds = parseMilliseconds(value, 1000)
  if (seconds !== undefined || value === null) return seconds
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now.getTime())
}
