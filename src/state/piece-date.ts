const day = /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})/
const chineseDay = /^(\d{4})年(\d{1,2})月(\d{1,2})日/
const time = /^(?:[Tt]|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?\s*([Zz]|[+-]\d{2}:?\d{2})?$/

const two = (text: string): string => text.padStart(2, '0')

const daysIn = (year: number, month: number): number => {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0
}

const exists = (year: string, month: string, date: string): boolean =>
  Number(date) >= 1 && Number(date) <= daysIn(Number(year), Number(month))

const normaliseZone = (zone: string): string | null => {
  if (/^z?$/i.test(zone)) return zone.toUpperCase()
  const [hours, minutes] = [zone.slice(1, 3), zone.slice(-2)]
  return Number(hours) <= 14 && Number(minutes) <= 59 ? `${zone.charAt(0)}${hours}:${minutes}` : null
}

const normaliseTime = (text: string): string | null => {
  const [, hours = '', minutes = '', seconds = '00', fraction = '', zone = ''] = time.exec(text) ?? []
  if (hours === '' || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return null
  const zoned = normaliseZone(zone)
  return zoned === null ? null : `T${two(hours)}:${minutes}:${seconds}${fraction}${zoned}`
}

/**
 * The ISO 8601 form of a date (`2025/1/3` -> `2025-01-03`) or date-time, which keeps its offset, or its lack of one;
 * null for anything else and for days that do not exist. Year first only: 3/1/2025 could be two days.
 */
export const normaliseDate = (text: string): string | null => {
  const trimmed = text.trim()
  const plain = day.exec(trimmed)
  const parts = plain ? [plain[1], plain[3], plain[4]] : chineseDay.exec(trimmed)?.slice(1)
  const [year = '', month = '', date = ''] = parts ?? []
  if (!exists(year, month, date)) return null
  const iso = `${year}-${two(month)}-${two(date)}`
  const rest = trimmed.slice((plain ?? chineseDay.exec(trimmed))?.[0].length)
  if (rest === '') return iso
  const clock = normaliseTime(rest)
  return clock && iso + clock
}
