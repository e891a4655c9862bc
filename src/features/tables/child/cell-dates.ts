/** What was met in the cells of a column that its reading alone does not say: units, odd signs, offsets, words. */
export type Marks = Set<string>

/** The order of the parts of a date whose year is not first with four digits; `utc`: only times that have an offset. */
export type DateOrder = 'dmy' | 'mdy' | 'ymd' | 'utc'

const yearFirst = /^(\d{4})([-/.])\s?(\d{1,2})\2\s?(\d{1,2})\.?(?:(?:T|,?\s+)(\S.*))?$/
const yearInChinese = /^(\d{4})()年(\d{1,2})月(\d{1,2})[日号]()$/
const threeParts = /^(\d{1,2})([-/.])\s?(\d{1,2})\2\s?(\d{4}|\d{2})\.?(?:(?:T|,?\s+)(\S.*))?$/
const clock =
  /^(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?([ap]\.?m\.?)?\s?(Z|UTC|GMT|[-+]\d{2}(?::?\d{2})?)?$/i

/** A date in ISO form, so that dates sort as texts: `2026-01-05 13:45:10+02:00`. Undefined: it is not a date of this order. */
export const readDate = (cell: string, order: DateOrder, marks: Marks): string | undefined => {
  const first = cell.charCodeAt(0)
  if (first < 48 || first > 57 || cell.length < 6 || cell.length > 50) return undefined
  const parts = yearFirst.exec(cell) ?? yearInChinese.exec(cell)
  if (parts) {
    const [, year = '', , month = '', day = '', time] = parts
    return toIso(year, month, day, time, order, marks)
  }
  const [, a = '', separator = '', b = '', c = '', time] = threeParts.exec(cell) ?? []
  if (a === '' || order === 'utc' || (c.length === 2 && separator !== '/' && b.length < 2)) return undefined
  // no country writes the month first with dots
  if (order === 'ymd' ? c.length === 4 || separator === '.' : order === 'mdy' && separator === '.')
    return undefined
  const [year, month, day] = order === 'ymd' ? [a, b, c] : order === 'dmy' ? [c, b, a] : [c, a, b]
  marks.add(year.length === 2 ? 'two-digit years' : 'four-digit years')
  // 1.10.24 may be a version, and 01.10.24 is not
  if (separator === '/' || c.length === 4 || a.startsWith('0') || b.startsWith('0'))
    marks.add('surely a date')
  return toIso(toFullYear(year), month, day, time, order, marks)
}

/** Of two digits 00 to 29 and 69 to 99: those between are of another century in each program. */
const toFullYear = (year: string): string => {
  if (year.length === 4) return year
  return /^[012]\d$/.test(year) ? `20${year}` : /^(?:69|[789]\d)$/.test(year) ? `19${year}` : ''
}

const monthDays = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const toIso = (
  year: string,
  month: string,
  day: string,
  time: string | undefined,
  order: DateOrder,
  marks: Marks,
): string | undefined => {
  const days = Number(month) === 2 && !isLeapYear(Number(year)) ? 28 : (monthDays[Number(month) - 1] ?? 0)
  if (Number(year) === 0 || Number(day) < 1 || Number(day) > days) return undefined
  const date = `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
  if (time === undefined || time === '') return order === 'utc' ? undefined : date
  const [whole, hours = '', minutes = '', seconds, fraction, half, zone = ''] = clock.exec(time) ?? []
  const hour = whole === undefined ? undefined : toHour(hours, half)
  if (hour === undefined || Number(minutes) > 59 || Number(seconds ?? 0) > 60) return undefined
  const text = `${hour}:${minutes}${seconds === undefined ? '' : `:${seconds}${fraction === undefined ? '' : `.${fraction}`}`}`
  const offset = toOffset(zone)
  if (order !== 'utc') {
    marks.add(`offset ${offset}`)
    return `${date} ${text}${zone === '' ? '' : offset}`
  }
  if (zone === '') return undefined
  const at = new Date(`${date}T${hour}:${minutes}:${seconds ?? '00'}${offset}`)
  if (Number.isNaN(at.getTime())) return undefined
  const end = fraction === undefined ? '' : `.${fraction}`
  return `${at.toISOString().slice(0, 19).replace('T', ' ')}${end}Z`
}

const isLeapYear = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0

/** Two digits, of 24 hours. */
const toHour = (hours: string, half: string | undefined): string | undefined => {
  const hour = Number(hours)
  if (half === undefined) return hour < 24 ? hours.padStart(2, '0') : undefined
  if (hour < 1 || hour > 12) return undefined
  return String((hour % 12) + (/^p/i.test(half) ? 12 : 0)).padStart(2, '0')
}

const toOffset = (zone: string): string => {
  if (!/^[-+]/.test(zone)) return zone && 'Z'
  return zone.length === 3 ? `${zone}:00` : zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone
}

const span = /^(\d{1,7}):([0-5]\d):([0-5]\d)(?:[.,](\d{1,9}))?$/

/** A time of day as `07:30:00`, or a duration as `26:30:00`: of two numbers only a time, since 75:30 may be minutes. */
export const readTime = (cell: string, kind: 'time' | 'duration'): string | undefined => {
  const first = cell.charCodeAt(0)
  if (first < 48 || first > 57 || cell.length < 4 || cell.length > 20) return undefined
  if (kind === 'duration') {
    const [, hours, minutes, seconds, fraction] = span.exec(cell) ?? []
    if (hours === undefined) return undefined
    return `${hours.padStart(2, '0')}:${minutes}:${seconds}${fraction === undefined ? '' : `.${fraction}`}`
  }
  const [, hours, minutes = '', seconds, fraction, half, zone] = clock.exec(cell) ?? []
  const hour = hours === undefined || zone !== undefined ? undefined : toHour(hours, half)
  if (hour === undefined || Number(minutes) > 59 || Number(seconds ?? 0) > 59) return undefined
  return `${hour}:${minutes}${seconds === undefined ? '' : `:${seconds}`}${fraction === undefined ? '' : `.${fraction}`}`
}

/** The seconds of a time or duration as `readTime` gives them; null: it is another text. */
export const toSeconds = (text: string): number | null => {
  const match = /^(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?$/.exec(text)
  return match && Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3] ?? 0)
}
