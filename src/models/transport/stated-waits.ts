import { isJsonObject } from '../../infra/lib/json-text.ts'

/** The longest wait, whatever the server asks for. */
const maxWaitMs = 86_400_000
/** The longest wait for a limit that the server only tells of. */
const maxResetMs = 600_000

/**
 * A group of languages a line: its seconds; minutes; hours; days; the words before a wait; those behind one. `~`: any letters follow.
 * A word of letters that have capitals is whole; others may go on. All in small letters: a pattern that looks past case takes long to compile.
 */
const languages = String.raw`
s|sec~; m|min~; h|hrs?|hours?; d|days?; try(?:ing)? again|retry(?:ing)?(?!\W?(?:attempt|count|limit|times))|wait(?:ing)?|resets?|available (?:again |back )?(?:in|at|after)|back|allowed (?:again )?(?:in|at|after)|cool.?down
sek~; min~; std|stunden?|uur|tim~; tage?n?|dag~; versuch~|warte~|erneut|opnieuw|probeer|wacht~|f[öo]rs[öo]k|pr[øo]v|v[äe]nt~; (?:erneut|wieder|nochmals?) (?:versuch|prob)~|opnieuw
s[eé][cg]~; min~; heures?|hor?as?|or[ae]; jours?|d[ií]as?|giorn~; r[ée]essay~|attend(?:ez|re|i|ere|ete)|patient~|r?e?int[ée]nt~|esper[ae]~|tent(?:e|ar)|aguard~|riprov~|aspett~
с|сек~|sek~; м|мин~|хв~; ч|час~|годин~|godz~|hod~; д|дн~|день|дней|dni|dzień; повтор~|попроб~|попытк~|подожд~|снова|спроб~|зачека~|ponownie|spróbuj~|poczek~|odczek~|zkuste|počkej~
sn|san~; dk|dak~; sa|saat~; gün~; tekrar|yeniden|bekle~; (?:sonra|içinde)?[^.;\d]{0,12}(?:tekrar|yeniden|bekle)
giây|detik; phút|menit|minit; giờ|jam; ngày|hari; thử lại|đợi|chờ|coba lagi|cuba|ulangi|tunggu
秒; 分[钟鐘]?; 个?小[时時]|時間; 天|日; 等(?=待|\s?\d)|重[试試]|再試行; [之以]?[后後][^。；]{0,8}(?:重[试試新置]|再[试試次度请請来]|恢复|解除)|間?お?待
초; 분; 시간; 일; 재시도|대기; (?!당)[가-힣\s]{0,8}(?:다시|재시도|기다|대기)
ثا?ن~|ثوا~; دق~; ساع~; يوم|أيام|روز; أخرى|انتظ~|المحاولة|إعادة|تلاش; دیگر|بعد|صبر
सेक~|วินาที; मिनट|นาที; घंट~|ชั่วโมง; दिन|วัน; पुनः|प्रतीक्षा|ลองใหม่|รอ(?!บ)|อีกครั้ง; [^।;\d]{0,12}(?:बाद|प्रतीक्षा|रुक)`
  .replaceAll('~', String.raw`[^\s\d.,:;!?]{0,12}`)
  .split('\n')
  .map((line) => line.split(/;\s/))
const join = (column: number): string => languages.flatMap((line) => line[column] || []).join('|')
const units = [join(0), join(1), join(2), join(3), 'ms|mill?i[a-zé]{0,12}|毫秒']
const unitMs = [1000, 60_000, 3_600_000, 86_400_000, 1]
const amount = String.raw`(\d{1,15}(?:[.,]\d{1,9})?)\s{0,3}(?:${units.map((names) => `(${names})`).join('|')})(?!\p{LC})`
const duration = String.raw`(?:${amount.replaceAll(/\((?!\?)/g, '(?:')}[\s,]{0,3}(?:(?:and|und|et?|y|и|và|dan)\s)?){1,5}`
const time = String.raw`\d{4}-\d\d-\d\d[t ][\d:.]{5,20}(?:z| ?utc| ?gmt|[+-]\d\d:?\d\d)`
const amounts = new RegExp(amount, 'gu')
const isDuration = new RegExp(String.raw`^\s*${duration}$`, 'u')
/** ISO, or that of HTTP: `Date.parse` reads a year in any text with a number. */
const isDate = /^\s*(?:\d{4}-\d\d-\d\d[T ]|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? .{1,16})\d\d:\d\d/i
const phrases = [
  new RegExp(String.raw`(?<!\p{LC})(?:${join(4)})(?!\p{LC})[^.;。；।\d]{0,40}(${duration}|${time})`, 'u'),
  new RegExp(String.raw`(${duration})\s{0,3}(?:${join(5)})`, 'u'),
]

/** "1h2m3.5s", "20 seconds", "350ms", "1,5 Minuten". */
const parseDurationMs = (text: string): number =>
  [...text.matchAll(amounts)].reduce((sum, [, number = '', ...names]) => {
    const plain = number.replace(/,(?=\d{3}$)/, '').replace(',', '.')
    return sum + Number(plain) * (unitMs[names.findIndex(Boolean)] ?? 0)
  }, 0)

/** A time in the past does not count. A number is an amount of `unitMs`, or seconds or milliseconds since 1970. */
const toWaitMs = (value: unknown, unitMs: number, nowMs: number): number | undefined => {
  if (isJsonObject(value)) return toWaitMs(value.seconds, 1000, nowMs)
  if (typeof value !== 'number' && (typeof value !== 'string' || value.trim() === '')) return undefined
  const text = String(value).toLowerCase()
  if (isDuration.test(text)) return Math.min(maxWaitMs, Math.ceil(parseDurationMs(text)))
  const number = Number(value)
  const dateMs = isDate.test(text) ? Date.parse(text.toUpperCase()) : Number.NaN
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

/** The limits of the header `RateLimit` of IETF's drafts: `limit=9, remaining=0, reset=30` or `"a";r=0;t=30, "b";r=5`. */
const splitLimits = (header: string | null): string[] =>
  header?.split(/,(?=\s*(?:"[^"]*"|[\w-]+)\s*;)/).map((limit) => limit.trim()) ?? []
const remains = /(?:^|[;,\s])(?:remaining|r)\s*=\s*(\d+)/i
const resetsIn = /(?:^|[;,\s])(?:reset|t)\s*=\s*(\d+)/i
const policyWindow = /(?:^|[;,\s])w\s*=\s*(\d+)/i
const readParameter = (limit: string | undefined, pattern: RegExp): string | null =>
  pattern.exec(limit ?? '')?.[1] ?? null

/**
 * The wait that headers ask for, and the one until the limits that are used up are full again; where none is known to be
 * used up, until the first is; a long one that is known not to be used up does not count. Vendors send limits with each reply: they say nothing about another error.
 */
export const readHeaderWaits = (from: Headers, now: Date): HeaderWaits => {
  const read = (value: string | null, unitMs: number) => toWaitMs(value, unitMs, now.getTime())
  const named = limits.map((name) => ['remaining', 'reset'].map((part) => from.get(name.replace('*', part))))
  const policies = splitLimits(from.get('ratelimit-policy'))
  const combined = splitLimits(from.get('ratelimit')).map((limit) => {
    const [name] = limit.split(';')
    const policy = policies.length === 1 ? policies[0] : policies.find((one) => one.startsWith(`${name};`))
    // where it is not said, it is full again within the window of its policy
    return [
      readParameter(limit, remains),
      readParameter(limit, resetsIn) ?? readParameter(policy, policyWindow),
    ]
  })
  const resets = [...named, ...combined].flatMap(([remaining, reset]) => {
    const ms = read(reset ?? null, 1000)
    const left = Number.parseFloat(remaining ?? '')
    return ms && !(left > 0 && ms > 60_000) ? [{ ms: Math.min(maxResetMs, ms), isUsedUp: left === 0 }] : []
  })
  const usedUp = resets.filter(({ isUsedUp }) => isUsedUp).map(({ ms }) => ms)
  return {
    askedMs: read(from.get('retry-after-ms'), 1) ?? read(from.get('retry-after'), 1000),
    resetMs: usedUp.length > 0 ? Math.max(...usedUp) : resets.map(({ ms }) => ms).sort((a, b) => a - b)[0],
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
  const plain = words
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[٠-٩۰-۹]/g, (digit) => `${digit.charCodeAt(0) % 16}`)
  const found = phrases.map((phrase) => phrase.exec(plain)?.[1]).find((text) => text !== undefined)
  return findWaitField(json, nowMs) ?? toWaitMs(found, 1000, nowMs)
}
