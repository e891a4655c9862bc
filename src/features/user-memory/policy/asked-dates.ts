import { listContentWords } from './turn-text.ts'

/** From the first moment, up to but not including the last. `latest`: what was said last in it is meant, whatever it was about. */
export type AskedTime = { from: Date; until: Date; isLatest: boolean }

const dayMs = 86_400_000
/** Words by their place in their line; those between "/" mean the same. */
const [months = [], weekdays = [], units = [], numbers = []] =
  `january/januar february/februar march/märz april may/mai june/juni july/juli august september october/oktober november december/dezember
monday/montag/一 tuesday/dienstag/二 wednesday/mittwoch/三 thursday/donnerstag/四 friday/freitag/五 saturday/samstag/六 sunday/sonntag/日/天
day/tag/天 week/woche/周/星期 month/monat/月 year/jahr/年
a/an/one/ein/einem/einer/一 two/zwei/两/二 three/drei/三 four/vier/四 five/fünf/五 six/sechs/六 seven/sieben/七 eight/acht/八 nine/neun/九 ten/zehn/十`
    .split('\n')
    .map((line) => line.split(' '))
const any = (words: readonly string[]): string => words.join('/').replaceAll('/', '|')
const placeOf = (words: readonly string[], word = ''): number =>
  words.findIndex((same) => same.split('/').includes(word.toLowerCase()))

/** Whole words, and what is written without spaces. */
const toRule = (words: string, signs = '(?!)'): RegExp => new RegExp(`\\b(?:${words})\\b|${signs}`, 'i')

const utc = (year: number, month: number, day = 1): Date => new Date(Date.UTC(year, month, day))
const dayOf = (now: Date): Date => utc(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate())
const addDays = (day: Date, count: number): Date => new Date(day.getTime() + count * dayMs)
const days = (from: Date, count: number) => ({ from, until: addDays(from, count) })
const weekdayOf = (day: Date): number => (day.getUTCDay() + 6) % 7
const monthOf = (year: number, month: number, count = 1) => ({
  from: utc(year, month),
  until: utc(year, month + count),
})
/** Null: there is no such day. */
const dateOf = (year: number, month: number, day: number): Span => {
  const span = days(utc(year, month, day), 1)
  return span.from.getUTCMonth() === month ? span : null
}
/** The unit that was so many before that of today. */
const unitOf = (today: Date, unit: number, ago: number): Span => {
  if (unit === 0) return days(addDays(today, -ago), 1)
  if (unit === 1) return days(addDays(today, -weekdayOf(today) - 7 * ago), 7)
  const year = today.getUTCFullYear()
  return unit === 2 ? monthOf(year, today.getUTCMonth() - ago) : monthOf(year - ago, 0, 12)
}

type Span = { from: Date; until: Date } | null
type Rule = readonly [RegExp, (today: Date, match: RegExpExecArray) => Span]

/** Words for a talk as such, and for going on with it. */
const aboutTalks =
  /\b(?:talk(?:ed)?|discuss(?:ed)?|sp(?:eak|oke)|chat(?:ted)?|conversation|session|left off|leave (?:it|off)|where were we|continue|last time)\b|\b(?:besprochen|gesprochen|geredet|stehen ?geblieben|weitermachen|letztes mal)\b|(?:聊|谈|说|讨论)(?:了|过|到)|上次|上一次|接着|继续/gi

/** A day that may be one to come is one of a talk where the question is about a talk. */
const isOfTalk = ({ input }: RegExpExecArray): boolean => input.search(aboutTalks) >= 0

const unit = `(${any(units)})`
const period = `(${any(units.slice(1))})`
const count = `(\\d\\d?|${any(numbers)})`
const month = `(${any(months)})`

const rules: readonly Rule[] = [
  [
    /\b(\d{4})(?:[-/]|\s*年\s*)(\d\d?)(?:[-/]|\s*月\s*)(\d\d?)\b/,
    (_, [, y, m, d]) => dateOf(Number(y), Number(m) - 1, Number(d)),
  ],
  [/\b(\d\d?)\.(\d\d?)\.(\d{4})\b/, (_, [, d, m, y]) => dateOf(Number(y), Number(m) - 1, Number(d))],
  [/(\d{4})\s*年\s*(\d\d?)\s*月/, (_, [, y, m]) => monthOf(Number(y), Number(m) - 1)],
  [
    toRule(
      `(?:(?:on|am) )?(?:${month} (\\d\\d?)(?:st|nd|rd|th)?|(\\d\\d?)(?:st|nd|rd|th|\\.)? ${month})(?:,? (\\d{4}))?`,
      '(\\d\\d?)月(\\d\\d?)[日号]',
    ),
    (today, match) => {
      const [, before, dayAfter, dayBefore, after, year, number, numbered] = match
      const at = number ? Number(number) - 1 : placeOf(months, before ?? after)
      const day = Number(dayAfter ?? dayBefore ?? numbered)
      if (year || !isOfTalk(match)) return year ? dateOf(Number(year), at, day) : null
      const span = dateOf(today.getUTCFullYear(), at, day)
      return span && span.from > today ? dateOf(today.getUTCFullYear() - 1, at, day) : span
    },
  ],
  [/大前天/, (today) => unitOf(today, 0, 3)],
  [/\bday before yesterday\b|\bvorgestern\b|前天/i, (today) => unitOf(today, 0, 2)],
  [/\byesterday\b|\blast night\b|\bgestern(?: abend)?\b|昨[天晚]/i, (today) => unitOf(today, 0, 1)],
  [/\b(?:earlier )?today\b|\bthis morning\b|\bheute\b|今天/i, (today) => unitOf(today, 0, 0)],
  [
    toRule(`${count} ${unit}s? ago|vor ${count} ${unit}e?n?`, `${count}\\s*个?${unit}前`),
    (today, [, n, of, vor, von, zh, zhOf]) => {
      const word = n ?? vor ?? zh
      return unitOf(today, placeOf(units, of ?? von ?? zhOf), Number(word) || placeOf(numbers, word) + 1)
    },
  ],
  [
    toRule(`(?:(on|am)|last|letzten) (${any(weekdays)})`, '上个?(?:周|星期)([一二三四五六日天])'),
    (today, match) => {
      const [, isOn, name, sign] = match
      const ago = weekdayOf(today) - placeOf(weekdays, name ?? sign)
      return isOn && !isOfTalk(match) ? null : unitOf(today, 0, sign || ago <= 0 ? ago + 7 : ago)
    },
  ],
  [
    toRule(
      `(?:(this|diese[nrs]?)|last|(?:letzte|vorige)[nrs]?) ${period}`,
      `(?:(这个?|本|今)|上个?|去)${period}`,
    ),
    (today, [, now, of, zhNow, zhOf]) => unitOf(today, placeOf(units, of ?? zhOf), now || zhNow ? 0 : 1),
  ],
  [
    toRule(`(?:in|back in|of|im) ${month}(?: (\\d{4}))?`),
    (today, [, name, year]) => {
      const at = placeOf(months, name)
      return monthOf(Number(year ?? today.getUTCFullYear() - (at > today.getUTCMonth() ? 1 : 0)), at)
    },
  ],
  [/\b(?:in|im jahr) (20\d\d)\b/i, (_, [, year]) => monthOf(Number(year), 0, 12)],
]

/**
 * The time that a question asks about. The first date in its words filters what is searched, also of a question about something
 * else; `isLatest` where it names a talk by nothing but its time ("Where were we yesterday?"). Days are of UTC. Null: no time.
 */
export const findAskedTime = (question: string, now: Date): AskedTime | null => {
  const asked = question.slice(0, 2000)
  const today = dayOf(now)
  const found = rules.flatMap(([pattern, toSpan]) => {
    const match = pattern.exec(asked)
    const span = match && toSpan(today, match)
    return span && span.from <= now ? [{ span, pattern }] : []
  })[0]
  const rest = found ? asked.replace(found.pattern, ' ') : asked
  const isLatest =
    rest.search(aboutTalks) >= 0 && listContentWords(rest.replaceAll(aboutTalks, ' ')).length === 0
  const isWhole = found !== undefined && listContentWords(rest).length === 0
  if (!found && !isLatest) return null
  return {
    ...(found?.span ?? { from: new Date(0), until: addDays(today, 2) }),
    isLatest: isLatest || isWhole,
  }
}
