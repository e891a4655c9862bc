import { isJsonObject } from '../../infra/lib/json-text.ts'

/** The longest wait, whatever the server asks for. */
const maxWaitMs = 86_400_000
/** The longest wait for a limit that the server only tells of. */
const maxResetMs = 600_000

/** The first that fits counts. */
const units: readonly (readonly [name: RegExp, ms: number])[] = [
  [/^(ms|mil|毫)/i, 1],
  [/^(h|st|小)/i, 3_600_000],
  [/^(s|秒)/i, 1000],
  [/^(m|分)/i, 60_000],
  [/^/, 86_400_000],
]
/** In English, German, French and Spanish. */
const unit = String.raw`(?:ms|mill?i\p{L}{0,12}|s(?:[eé][ckg]\p{L}{0,12}|tunden?)?|m(?:in\p{L}{0,12})?|h(?:(?:ou|eu)?rs?|eures?|oras?)?|d(?:ays?|[ií]as?)?|tage?n?|jours?)(?!\p{L})`
const amount = String.raw`\d{1,15}(?:\.\d{1,9})?\s{0,3}(?:${unit}|毫秒|秒|分|小时|天)`
const duration = String.raw`(?:${amount}[\s,钟]{0,3}(?:and\s)?){1,5}`
const time = String.raw`\d{4}-\d\d-\d\d[T ][\d:.]{5,20}(?:Z| ?UTC| ?GMT|[+-]\d\d:?\d\d)`
const isDuration = new RegExp(String.raw`^\s*${duration}$`, 'iu')
/** ISO, or that of HTTP: `Date.parse` reads a year in any text with a number. */
const isDate = /^\s*(?:\d{4}-\d\d-\d\d[T ]|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? .{1,16})\d\d:\d\d/i
/** The words around a wait. */
const before = String.raw`try(?:ing)? again|retry(?:ing)?(?!\W?(?:attempt|count|limit|times))|wait(?:ing)?|resets?|available (?:again |back )?(?:in|at|after)|back|allowed (?:again )?(?:in|at|after)|cool-?down|versuchen|warten|erneut|r[ée]essay\p{L}{0,12}|attend(?:ez|re)|int[ée]nt\p{L}{0,12}|espere`
const phrases = [
  new RegExp(String.raw`(?:${before})\b[^.;\d]{0,40}(${duration}|${time})`, 'iu'),
  new RegExp(`(${duration})[之以]?[后後][^。；]{0,8}(?:重[试試新置]|再[试試次请来]|恢复|解除)`, 'iu'),
  new RegExp(String.raw`等待?\s{0,3}(${duration})`, 'iu'),
]

/** "1h2m3.5s", "20 seconds", "350ms". */
const parseDurationMs = (text: string): number =>
  [...text.matchAll(/(\d{1,15}(?:\.\d{1,9})?)\s{0,3}([^\d\s,]{1,12})/g)].reduce(
    (sum, [, number, name = '']) => {
      const [, ms = 0] = units.find(([pattern]) => pattern.test(name)) ?? []
      return sum + Number(number) * ms
    },
    0,
  )

/** A time in the past does not count. A number is an amount of `unitMs`, or seconds or milliseconds since 1970. */
const toWaitMs = (value: unknown, unitMs: number, nowMs: number): number | undefined => {
  if (isJsonObject(value)) return toWaitMs(value.seconds, 1000, nowMs)
  if (typeof value !== 'number' && (typeof value !== 'string' || value.trim() === '')) return undefined
  const text = String(value)
  if (isDuration.test(text)) return Math.min(maxWaitMs, Math.ceil(parseDurationMs(text)))
  const number = Number(value)
  const dateMs = isDate.test(text) ? Date.parse(text) : Number.NaN
  const atMs = Number.isNaN(number) ? dateMs : number < 1e12 ? number * 1000 : number
  const ms = number < 1e9 ? number * unitMs : Math.max(0, atMs - nowMs)
  return ms >= 0 ? Math.min(maxWaitMs, ms) : undefined
}

type Headers = { get(name: string): string | null }

/** When a limit is full again (`reset`), and what is left of it (`remaining`). */
const limits = [
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map((kind) => `anthropic-ratelimit-${kind}-*`),
  ...['-requests', '-tokens', '-requests-day', '-tokens-minute', ''].map((kind) => `x-ratelimit-*${kind}`),
  'ratelimit-*',
]

/**
 * The wait that headers ask for, and the one until the limits that are used up are full again; where none is known to be
 * used up, until the first is; a long one that is known not to be used up does not count. Vendors send limits with each reply: they say nothing about another error.
 */
export const readHeaderWaits = (from: Headers, now: Date): HeaderWaits => {
  const read = (name: string, unitMs: number) => toWaitMs(from.get(name), unitMs, now.getTime())
  const resets = limits.flatMap((name) => {
    const ms = read(name.replace('*', 'reset'), 1000)
    const left = Number.parseFloat(from.get(name.replace('*', 'remaining')) ?? '')
    return ms && !(left > 0 && ms > 60_000) ? [{ ms: Math.min(maxResetMs, ms), isUsedUp: left === 0 }] : []
  })
  const usedUp = resets.filter(({ isUsedUp }) => isUsedUp).map(({ ms }) => ms)
  const all = resets.map(({ ms }) => ms)
  return {
    askedMs: read('retry-after-ms', 1) ?? read('retry-after', 1000),
    resetMs: usedUp.length > 0 ? Math.max(...usedUp) : all.length > 0 ? Math.min(...all) : undefined,
  }
}
export type HeaderWaits = { askedMs?: number | undefined; resetMs?: number | undefined }

const fields =
  /^(retry_?(after|delay|in)|resets?_?(after|in|at|time)?|(next_?)?available_?(at|in)|cool_?down|wait(_?time)?|estimated_?time|(x_)?rate_?limit_?reset\w*)(_?(ms|millis(econds)?|s|sec|seconds))?$/i

/** The wait in a field of a body, however deep. */
const findWaitField = (value: unknown, nowMs: number, depth = 0): number | undefined => {
  if (typeof value !== 'object' || value === null || depth > 5) return undefined
  for (const [name, item] of Object.entries(value)) {
    const plain = name.replaceAll('-', '_')
    const ms = fields.test(plain)
      ? toWaitMs(item, /m(s|illis(econds)?)$/i.test(plain) ? 1 : 1000, nowMs)
      : findWaitField(item, nowMs, depth + 1)
    if (ms !== undefined) return ms
  }
  return undefined
}

/** The wait that a body asks for, in a field or in words. */
export const readBodyWaitMs = (json: unknown, words: string, nowMs = Date.now()): number | undefined => {
  const found = phrases.map((phrase) => phrase.exec(words)?.[1]).find((text) => text !== undefined)
  return findWaitField(json, nowMs) ?? toWaitMs(found, 1000, nowMs)
}
