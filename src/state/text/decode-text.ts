/** Bytes to text. Pure. */

const probedBytes = 8192

const decodeAs = (encoding: string, bytes: Uint8Array): string | null => {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

const startsWith = (bytes: Uint8Array, ...start: number[]): boolean =>
  start.every((byte, at) => bytes[at] === byte)

const utf16 = (bytes: Uint8Array): string | null => {
  if (startsWith(bytes, 0xff, 0xfe)) return 'utf-16le'
  return startsWith(bytes, 0xfe, 0xff) ? 'utf-16be' : null
}

/** Control characters that text has no use for: all but backspace, tab, line ends, form feed and escape. */
const isControl = (byte: number): boolean =>
  (byte < 32 && !(byte >= 8 && byte <= 13) && byte !== 27) || byte === 127

/** A zero byte at the start (as git decides), a PDF, or one control character in twenty. */
const looksBinary = (bytes: Uint8Array): boolean => {
  const probe = bytes.subarray(0, probedBytes)
  if (probe.includes(0) || startsWith(bytes, 0x25, 0x50, 0x44, 0x46, 0x2d)) return true
  return probe.filter(isControl).length * 20 > probe.length
}

/**
 * The text of a file, without its byte order mark, or null when the file is binary. UTF-16 needs its mark; else
 * UTF-8, then GB18030 (which GBK and GB2312 are part of), then Windows-1252.
 */
export const decodeText = (bytes: Uint8Array): string | null => {
  const wide = utf16(bytes)
  if (wide) return new TextDecoder(wide).decode(bytes)
  if (looksBinary(bytes)) return null
  return (
    decodeAs('utf-8', bytes) ?? decodeAs('gb18030', bytes) ?? new TextDecoder('windows-1252').decode(bytes)
  )
}
