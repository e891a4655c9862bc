/** What the format of a cell shows of its number: null: the number; `0`s and signs: the digits of a code, as `000-00-0000`. */
export type NumberFormat = 'date' | 'time' | 'duration' | `0${string}` | null

/** The formats that have no code in the file: days, times, and those of East Asia; 46 is `[h]:mm:ss`. */
export const findBuiltInFormat = (id: number): NumberFormat => {
  if ((id >= 18 && id <= 21) || id === 45 || id === 47) return 'time'
  if (id === 46) return 'duration'
  return (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 50 && id <= 58) ? 'date' : null
}

/** Of a format code, what its letters mean: `dd/mm/yyyy`, `h:mm`, `[h]:mm`. */
export const parseFormatCode = (code: string): NumberFormat => {
  const digits = code.replaceAll('\\', '')
  if (/^00+(?:[-: ]0+)*$/.test(digits)) return digits as `0${string}`
  const letters = code.replace(/"[^"]*"|\\.|[_*]./g, '')
  if (/\[(?:h+|m+|s+)\]/i.test(letters)) return 'duration'
  const shown = letters.replace(/\[[^[\]]*\]|am\/pm|a\/p/gi, '')
  if (/general/i.test(shown)) return null
  if (/[dy]/i.test(shown) || /m/i.test(shown.replace(/h[^a-z]*m{1,5}|m{1,5}[^a-z]*s/gi, ''))) return 'date'
  return /[hs]/i.test(shown) ? 'time' : null
}

const dayMs = 86_400_000

/** A number as the text that its format shows: of a serial number of days a date, a time, or a duration. `is1904`: the workbook counts from 1904. */
export const toFormattedText = (serial: number, format: NumberFormat, is1904: boolean): string => {
  if (format?.startsWith('0')) {
    if (serial < 0 || !Number.isInteger(serial)) return String(serial)
    const places = format.replace(/\D/g, '').length
    const digits = String(serial).padStart(places, '0')
    let at = digits.length - places
    return digits.slice(0, at) + format.replaceAll('0', () => digits[at++] ?? '')
  }
  // a clock that shows no day counts on past midnight; with days of centuries it is a date
  if (format === 'duration' || (format === 'time' && Math.abs(serial) < 366)) return toClockText(serial)
  if (serial < 0 && !is1904) return String(serial)
  // Excel's 1900 has a 29 February and a day 0
  if (!is1904 && serial < 1) return format === 'date' && serial > 0 ? toClockText(serial) : '1900-01-00'
  if (!is1904 && serial >= 60 && serial < 61) return '1900-02-29'
  const epoch = is1904 ? 24_107 : serial < 60 ? 25_568 : 25_569
  const ms = Math.round((serial - epoch) * dayMs)
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) return String(serial)
  const [day = '', time = ''] = date.toISOString().slice(0, -1).split('T')
  return ms % dayMs === 0 ? day : `${day} ${time.replace('.000', '')}`
}

/** `26:30:00`, with milliseconds where there are some. */
const toClockText = (serial: number): string => {
  const ms = Math.round(Math.abs(serial) * dayMs)
  const two = (number: number): string => String(Math.trunc(number)).padStart(2, '0')
  const rest = ms % 1000 === 0 ? '' : `.${String(ms % 1000).padStart(3, '0')}`
  const text = `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}${rest}`
  return serial < 0 ? `-${text}` : text
}
