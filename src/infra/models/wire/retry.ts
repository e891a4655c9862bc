/** `attempts` is the most provider requests one call makes; waits grow from `baseMs` to `maxMs`. */
export type Retry = { attempts: number; baseMs: number; maxMs: number }

/** Full jitter: anywhere between nothing and the doubled limit, so that clients spread out. `retries` counts from 1. */
export const backoffMs = ({ baseMs, maxMs }: Retry, retries: number, random: () => number): number =>
  random() * Math.min(maxMs, baseMs * 2 ** Math.min(retries - 1, 30))

const milliseconds = (value: string | null, unit: number): number | undefined => {
  if (value === null || value.trim() === '') return undefined
  const number = Number(value)
  return Number.isFinite(number) && number >= 0 ? number * unit : undefined
}

type Headers = { get(name: string): string | null }

/** Nobody is left alone for longer, whatever he asks for: by then he may be well, and dates end somewhere. */
const longestAskedMs = 86_400_000

/** What `Retry-After` (seconds or a date) or OpenAI's `retry-after-ms` asks for. */
export const retryAfterMs = (headers: Headers, now: Date): number | undefined => {
  const ms = askedMs(headers, now)
  return ms === undefined ? undefined : Math.min(ms, longestAskedMs)
}

const askedMs = (headers: Headers, now: Date): number | undefined => {
  const exact = milliseconds(headers.get('retry-after-ms'), 1)
  if (exact !== undefined) return exact
  const value = headers.get('retry-after')
  const seconds = milliseconds(value, 1000)
  if (seconds !== undefined || value === null) return seconds
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now.getTime())
}
