/** Bytes to text. Pure. */

const probedBytes = 8192

const decodeAs = (encoding: string, bytes: Uint8Array): string | null => {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Control characters that text has no use for: all but backspace, tab, line ends, form feed and escape. */
const isControl = (byte: number): boolean =>
  (byte < 32 && !(byte >= 8 && byte <= 13) && byte !== 27) || byte === 127

/** A zero byte at the start (as git decides), or one control character in twenty. */
const looksBinary = (bytes: Uint8Array): boolean => {
  const probe = bytes.subarray(0, probedBytes)
  return probe.includes(0) || probe.filter(isControl).length * 20 > probe.length
}

/**
 * The text of a file, without its byte order mark, or null when the file is binary, as a PDF is. UTF-16 needs its mark; else
 * UTF-8, then GB18030 (which GBK and GB2312 are part of), then Windows-1252.
 */
export const decodeText = (bytes: Uint8Array): string | null => {
  const start = Buffer.from(bytes.subarray(0, 5)).toString('latin1')
  if (start.startsWith('\xff\xfe')) return new TextDecoder('utf-16le').decode(bytes)
  if (start.startsWith('\xfe\xff')) return new TextDecoder('utf-16be').decode(bytes)
  if (start === '%PDF-' || looksBinary(bytes)) return null
  return (
    decodeAs('utf-8', bytes) ?? decodeAs('gb18030', bytes) ?? new TextDecoder('windows-1252').decode(bytes)
  )
}
