/** How times, durations and numbers read. */

export const showMs = (ms: number): string => {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
  const hours = ms / 3_600_000
  return hours < 48 ? `${hours.toFixed(1)} h` : `${(hours / 24).toFixed(1)} d`
}

const pad = (value: number): string => String(value).padStart(2, '0')

/** In the time zone of the reader: 2026-11-25 21:13:12. */
export const showTime = (iso: string | null | undefined): string => {
  if (!iso) return '–'
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return iso
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`
  return `${day} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`
}

export const showNumber = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: 6 }).replaceAll(',', ' ')

/** From its start to its end, or until now. */
export const toMs = (from: string | null, to: string | null): number | null =>
  from === null ? null : Math.max(0, (to === null ? Date.now() : Date.parse(to)) - Date.parse(from))

/**
 * Text of others as it is safe to look at: characters that turn the direction around or have no width become visible, and
 * what is longer than `most` is cut.
 */
export const toPlain = (text: string, most = 20_000): string =>
  (text.length > most ? `${text.slice(0, most)} …` : text).replace(
    /[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u061c]/g,
    (sign) => `\u27e8U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`,
  )
