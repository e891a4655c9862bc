import { blank } from './text.ts'

/** Dates as people write them, brought to `YYYY-MM-DD` (with the time when there is one), so that text order is time order. */

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] as const
const monthPattern =
  'jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?'

const monthNumber = (name: string): number =>
  months.findIndex((month) => name.toLowerCase().startsWith(month)) + 1

const pad = (value: number | string): string => String(value).padStart(2, '0')

const iso = (
  year: number | string,
  month: number | string,
  day: number | string,
  time?: string,
): string | null => {
  const m = Number(month)
  const d = Number(day)
  if (m < 1 || m > 12 || d < 1 || d > 31) return null
  return `${year}-${pad(m)}-${pad(d)}${time ? ` ${time.padStart(time.indexOf(':') === 1 ? time.length + 1 : 0, '0')}` : ''}`
}

const clock = '(?:[T ,]+(\\d{1,2}:\\d{2}(?::\\d{2})?)(?:\\.\\d+)?(?:Z|[+-]\\d{2}:?\\d{2})?)?'
const yearFirst = new RegExp(`^(\\d{4})[-/.年](\\d{1,2})(?:[-/.月](\\d{1,2})日?)?月?${clock}$`)
const yearLast = new RegExp(`^(\\d{1,2})([-/.])(\\d{1,2})\\2(\\d{4})${clock}$`)
const dayName = new RegExp(`^(\\d{1,2})(?:st|nd|rd|th)?[ -](${monthPattern})\\.?,?[ -](\\d{4})${clock}$`, 'i')
const nameDay = new RegExp(`^(${monthPattern})\\.? (?:(\\d{1,2})(?:st|nd|rd|th)?,? )?(\\d{4})${clock}$`, 'i')

/** A date as sortable text, or null. `dayFirst` decides 03/04/2024; a point or a first part over 12 means day first. */
export const readDate = (cell: string, dayFirst = false): string | null => {
  const text = cell.trim()
  if (text.length < 6 || text.length > 40 || !/^(?:\d|[JFMASOND][a-z]{2})/i.test(text) || !/\d/.test(text))
    return null
  let m = yearFirst.exec(text)
  if (m) return iso(m[1] ?? '', m[2] ?? '', m[3] ?? 1, m[4])
  m = yearLast.exec(text)
  if (m) {
    const first = Number(m[1])
    const byDay = dayFirst || m[2] === '.' || first > 12
    return byDay ? iso(m[4] ?? '', m[3] ?? '', first, m[5]) : iso(m[4] ?? '', first, m[3] ?? '', m[5])
  }
  m = dayName.exec(text)
  if (m) return iso(m[3] ?? '', monthNumber(m[2] ?? ''), m[1] ?? '', m[4])
  m = nameDay.exec(text)
  return m ? iso(m[3] ?? '', monthNumber(m[1] ?? ''), m[2] ?? 1, m[4]) : null
}

/** True when some cell of a column can only be read day first. */
export const isDayFirst = (cells: readonly string[]): boolean =>
  cells.some((cell) => Number(/^(\d{1,2})[-/]\d{1,2}[-/]\d{4}/.exec(cell.trim())?.[1] ?? 0) > 12)

export type DatePart = 'year' | 'quarter' | 'month' | 'day'

/** The name of the period a date falls in: 2024, 2024-Q1, 2024-03, 2024-03-05. */
export const periodOf = (date: string, part: DatePart): string => {
  if (part === 'year') return date.slice(0, 4)
  if (part === 'month') return date.slice(0, 7)
  if (part === 'day') return date.slice(0, 10)
  return `${date.slice(0, 4)}-Q${Math.ceil(Number(date.slice(5, 7)) / 3)}`
}

export type DateRange = {
  from?: string
  before?: string
  year?: string
  months?: readonly number[]
  day?: string
}

export const inRange = (date: string, range: DateRange): boolean =>
  (range.from === undefined || date >= range.from) &&
  (range.before === undefined || date < range.before) &&
  (range.year === undefined || date.startsWith(range.year)) &&
  (range.day === undefined || date.startsWith(range.day)) &&
  (range.months === undefined || range.months.includes(Number(date.slice(5, 7))))

const literal = `(?:\\d{4}-\\d{1,2}(?:-\\d{1,2})?|\\d{4}/\\d{1,2}/\\d{1,2}|\\d{1,2}/\\d{1,2}/\\d{4}|\\d{4}年\\d{1,2}月(?:\\d{1,2}日)?|(?:${monthPattern})\\.? \\d{1,2}(?:st|nd|rd|th)?,? \\d{4}|\\d{1,2} (?:${monthPattern}) \\d{4})`
const between = new RegExp(
  `(?:between|from|从)?\\s*(${literal})\\s*(?:and|to|until|till|through|-|–|到|至)\\s*(${literal})`,
  'i',
)
const since = new RegExp(`(on or after|since|from|starting|after|自|从|later than)\\s*(${literal})`, 'i')
const until = new RegExp(`(on or before|until|till|up to|by|before|earlier than)\\s*(${literal})`, 'i')
const hanAfter = new RegExp(`(${literal})(之后|以后|以来)`)
const hanBefore = new RegExp(`(${literal})(之前|以前)`)
const single = new RegExp(`(?:on|in|of|for)?\\s*(${literal})`, 'i')
const monthYear = new RegExp(`\\b(${monthPattern})\\.?(?:,? (?:of )?(\\d{4}))?\\b`, 'i')
const quarter = /\bQ([1-4])(?:[ ,/-]*(?:of )?(\d{4}))?\b|(?:(\d{4})年?)?第?([一二三四1-4])季度/i
const hanMonth = /(?:(\d{4})年)?(\d{1,2})月(?:份)?/
const hanYear = /(\d{4})年/
const inYear = /\b(?:in|during|for|of|since)\s+((?:19|20)\d{2})\b/i

const endOf = (date: string, text: string): string =>
  /^\d{4}-\d{1,2}$/.test(text) ? `${date.slice(0, 7)}-32` : `${date.slice(0, 10)}~`

/** The first period a question speaks of and where it says so, or null. */
const findRange = (text: string): { range: DateRange; at: number; end: number } | null => {
  const found = (m: RegExpExecArray, range: DateRange) => ({ range, at: m.index, end: m.index + m[0].length })
  const day = (value: string | undefined): string => readDate(value ?? '') ?? '~'
  let m = between.exec(text)
  if (m) return found(m, { from: day(m[1]), before: endOf(day(m[2]), m[2] ?? '') })
  m = hanAfter.exec(text)
  if (m) return found(m, { from: day(m[1]) })
  m = hanBefore.exec(text)
  if (m) return found(m, { before: day(m[1]) })
  m = since.exec(text)
  if (m)
    return found(m, {
      from: /^(?:after|later than)$/i.test(m[1] ?? '') ? endOf(day(m[2]), m[2] ?? '') : day(m[2]),
    })
  m = until.exec(text)
  if (m)
    return found(m, {
      before:
        /before$|earlier/i.test(m[1] ?? '') && !/^on/i.test(m[1] ?? '')
          ? day(m[2])
          : endOf(day(m[2]), m[2] ?? ''),
    })
  m = single.exec(text)
  if (m) {
    const value = m[1] ?? ''
    const month = /^\d{4}-\d{1,2}$|月$/.test(value)
    return found(m, { day: day(value).slice(0, month ? 7 : 10) })
  }
  m = quarter.exec(text)
  if (m) {
    const q = Number(m[1] ?? ('一二三四'.includes(m[4] ?? '?') ? '一二三四'.indexOf(m[4] ?? '') + 1 : m[4]))
    const year = m[2] ?? m[3]
    return found(m, { months: [q * 3 - 2, q * 3 - 1, q * 3], ...(year ? { year } : {}) })
  }
  m = hanMonth.exec(text)
  if (m) return found(m, { months: [Number(m[2])], ...(m[1] ? { year: m[1] } : {}) })
  m = monthYear.exec(text)
  if (
    m &&
    (m[2] || !/^(?:may|mar)$/i.test(m[1] ?? '') || /\b(?:in|during|for) $/i.test(text.slice(0, m.index)))
  )
    return found(m, { months: [monthNumber(m[1] ?? '')], ...(m[2] ? { year: m[2] } : {}) })
  m = inYear.exec(text) ?? hanYear.exec(text)
  if (!m) return null
  return found(m, /^since/i.test(m[0]) ? { from: m[1] ?? '' } : { year: m[1] ?? '' })
}

/** All periods of a question: one with a beginning or an end stands alone, named ones may be several. */
export const findRanges = (text: string): { ranges: DateRange[]; rest: string } => {
  const ranges: DateRange[] = []
  let rest = text
  for (let found = findRange(rest); found && ranges.length < 8; found = findRange(rest)) {
    const open = found.range.from !== undefined || found.range.before !== undefined
    if (open && ranges.length > 0) break
    ranges.push(found.range)
    rest = blank(rest, found)
    if (open) break
  }
  return { ranges, rest }
}

/** The period a named range is an example of, for comparing periods. */
export const partOf = (range: DateRange): DatePart =>
  range.months
    ? range.months.length > 1
      ? 'quarter'
      : 'month'
    : range.day
      ? range.day.length > 7
        ? 'day'
        : 'month'
      : 'year'

const end = (text: string): string => text.replace('~', '').replace('-32', '')

/** `= 2024-03`, `= Mar 2024`, `from 2024-01-01 to 2024-02-01`, `after 2024-03-01`. */
export const showRange = (range: DateRange): string => {
  const { from, before } = range
  const last = before === undefined ? '' : /~|-32$/.test(before) ? `to ${end(before)}` : `before ${before}`
  if (from !== undefined || before !== undefined)
    return [from === undefined ? '' : `${/~|-32$/.test(from) ? 'after' : 'from'} ${end(from)}`, last]
      .filter((part) => part !== '')
      .join(' ')
  const names = (range.months ?? []).map((month) =>
    (months[month - 1] ?? '').replace(/^./, (c) => c.toUpperCase()),
  )
  return `= ${[range.day, names.join('/'), range.year].filter((part) => part).join(' ')}`
}
