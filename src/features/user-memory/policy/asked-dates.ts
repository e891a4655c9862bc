import { listContentWords } from './turn-text.ts'

/** From the first moment, up to but not including the last. `latest`: what was said last in it is meant, whatever it was about. */
export type AskedTime = { from: Date; until: Date; isLatest: boolean }

const dayMs = 86_400_000
const months = 'january february march april may june july august september october november december'.split(
  ' ',
)
const monthsGerman =
  'januar februar märz april mai juni juli august september oktober november dezember'.split(' ')

const dayOf = (now: Date): Date =>
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()))
const addDays = (day: Date, count: number): Date => new Date(day.getTime() + count * dayMs)
const days = (from: Date, count: number) => ({ from, until: addDays(from, count) })
const weekOf = (day: Date): Date => addDays(day, -((day.getUTCDay() + 6) % 7))
const monthOf = (year: number, month: number) => ({
  from: new Date(Date.UTC(year, month, 1)),
  until: new Date(Date.UTC(year, month + 1, 1)),
})

type Span = { from: Date; until: Date } | null
type Rule = readonly [RegExp, (today: Date, match: RegExpExecArray) => Span]

/** The latest month of this number that has begun. */
const latestMonth = (today: Date, month: number): Span =>
  month < 0 ? null : monthOf(today.getUTCFullYear() - (month > today.getUTCMonth() ? 1 : 0), month)

const rules: readonly Rule[] = [
  [
    /\b(\d{4})-(\d\d)-(\d\d)\b/,
    (_, [, y, m, d]) => days(new Date(Date.UTC(Number(y), Number(m) - 1, Number(d))), 1),
  ],
  [
    /(\d{4})\s*年\s*(\d{1,2})\s*月(?:\s*(\d{1,2})\s*[日号])?/,
    (_, [, y, m, d]) =>
      d
        ? days(new Date(Date.UTC(Number(y), Number(m) - 1, Number(d))), 1)
        : monthOf(Number(y), Number(m) - 1),
  ],
  [/\bday before yesterday\b|\bvorgestern\b|前天/i, (today) => days(addDays(today, -2), 1)],
  [/\byesterday\b|\bgestern\b|昨天/i, (today) => days(addDays(today, -1), 1)],
  [/\b(?:earlier )?today\b|\bthis morning\b|\bheute\b|今天/i, (today) => days(today, 1)],
  [
    /\b(\d{1,2}) days ago\b|\bvor (\d{1,2}) tagen\b|(\d{1,2})\s*天前/i,
    (today, m) => days(addDays(today, -Number(m[1] ?? m[2] ?? m[3])), 1),
  ],
  [
    /\b(\d{1,2}) weeks ago\b|\bvor (\d{1,2}) wochen\b|(\d{1,2})\s*周前/i,
    (today, m) => days(addDays(weekOf(today), -7 * Number(m[1] ?? m[2] ?? m[3])), 7),
  ],
  [/\bthis week\b|\bdiese woche\b|(?:这|本)(?:周|星期)/i, (today) => days(weekOf(today), 7)],
  [/\blast week\b|\bletzte woche\b|上(?:周|星期|个星期)/i, (today) => days(addDays(weekOf(today), -7), 7)],
  [
    /\bthis month\b|\bdiesen monat\b|(?:这个|本)月/i,
    (today) => monthOf(today.getUTCFullYear(), today.getUTCMonth()),
  ],
  [
    /\blast month\b|\bletzten monat\b|上个?月/i,
    (today) => monthOf(today.getUTCFullYear(), today.getUTCMonth() - 1),
  ],
  [
    /\blast year\b|\bletztes jahr\b|去年/i,
    (today) => ({
      from: new Date(Date.UTC(today.getUTCFullYear() - 1, 0, 1)),
      until: new Date(Date.UTC(today.getUTCFullYear(), 0, 1)),
    }),
  ],
  [
    new RegExp(`\\b(?:in|back in|of|im) (${[...months, ...monthsGerman].join('|')})(?: (\\d{4}))?\\b`, 'i'),
    (today, [, name = '', year]) => {
      const month = Math.max(months.indexOf(name.toLowerCase()), monthsGerman.indexOf(name.toLowerCase()))
      return year ? monthOf(Number(year), month) : latestMonth(today, month)
    },
  ],
]

/** Words for a talk as such, and for going on with it. */
const aboutTalks =
  /\b(?:talk(?:ed)?|discuss(?:ed)?|sp(?:eak|oke)|chat(?:ted)?|conversation|session|left off|leave (?:it|off)|where were we|continue|last time)\b|\b(?:besprochen|gesprochen|geredet|stehen ?geblieben|weitermachen|letztes mal)\b|(?:聊|谈|说|讨论)(?:了|过|到)|上次|上一次|接着|继续/gi

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
