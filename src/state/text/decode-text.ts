/** Bytes to text. Pure. */

const probedBytes = 8192
const sampledBytes = 1024 * 1024

const startsWith = (bytes: Uint8Array, ...start: number[]): boolean =>
  start.every((byte, at) => bytes[at] === byte)

/** By its mark, or where a text with at least one ASCII character in twenty has zero bytes beside these. Null: it is not UTF-16. */
export const detectUtf16 = (bytes: Uint8Array): string | null => {
  if (startsWith(bytes, 0xff, 0xfe)) return 'utf-16le'
  if (startsWith(bytes, 0xfe, 0xff)) return 'utf-16be'
  const probe = bytes.subarray(0, probedBytes)
  const isText = (encoding: string): boolean => {
    const text = isValid(encoding, probe) ? new TextDecoder(encoding).decode(probe, { stream: true }) : ''
    const plain = text.match(/[\s!-~]/g)?.length ?? 0
    return plain * 20 > text.length && !/(?![\t\n\f\r])[\p{Cc}\p{Cn}\p{Co}]/u.test(text)
  }
  const mayBe = probe.length % 2 === 0 && probe.includes(0)
  return (mayBe && ['utf-16le', 'utf-16be'].find(isText)) || null
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

const isValid = (encoding: string, sample: Uint8Array): boolean => {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(sample, { stream: true })
    return true
  } catch {
    return false
  }
}

const within = (byte: number, first: number, last: number): boolean => byte >= first && byte <= last

/**
 * The encodings of two bytes a character, each with the pairs that its texts mostly are: punctuation, kana and the common
 * characters. The text of another encoding, read as pairs, is often valid and seldom common.
 */
const pairEncodings: readonly { name: string; isCommon(lead: number, trail: number): boolean }[] = [
  {
    name: 'gb18030',
    isCommon: (lead, trail) => trail >= 0xa1 && (within(lead, 0xa1, 0xa3) || within(lead, 0xb0, 0xf7)),
  },
  { name: 'big5', isCommon: (lead) => within(lead, 0xa1, 0xc6) },
  {
    name: 'shift_jis',
    isCommon: (lead, trail) => within(lead, 0x81, 0x83) || within(lead * 256 + trail, 0x889f, 0x9872),
  },
]

/** Of the characters that are not ASCII, how many are common in this encoding, from 0 to 1. */
const shareOfCommon = (sample: Uint8Array, { name, isCommon }: (typeof pairEncodings)[number]): number => {
  let characters = 0
  let common = 0
  for (let at = 0; at < sample.length; at += 1) {
    const lead = sample[at] ?? 0
    if (lead < 0x80) continue
    characters += 1
    // a byte of its own: half-width kana
    if (name === 'shift_jis' && within(lead, 0xa0, 0xdf)) continue
    at += 1
    // between letters of ASCII, as the one of "Gerät" and "°C" are
    const isAlone = [at - 2, at, at + 1].every((near) => (sample[near] ?? 0) < 0x80)
    if (!isAlone && isCommon(lead, sample[at] ?? 0)) common += 1
  }
  return characters === 0 ? 0 : common / characters
}

/**
 * The encoding of text that is not UTF-8, by its first megabyte: the one of two bytes a character that makes most of it
 * common characters, where that is half of it; else Windows-1252, which any bytes are valid in.
 */
export const guessEncoding = (bytes: Uint8Array): string => {
  const sample = bytes.subarray(0, sampledBytes)
  const [best] = pairEncodings
    .map((encoding) => ({ name: encoding.name, share: shareOfCommon(sample, encoding) }))
    .filter(({ name, share }) => share >= 0.5 && isValid(name, sample))
    .sort((a, b) => b.share - a.share)
  const unicode = new TextDecoder().decode(sample)
  const isMostlyUtf8 = (unicode.match(/[^\0-\x7f\ufffd]/gu)?.length ?? 0) > unicode.split('\ufffd').length
  return detectUtf16(bytes) ?? (isMostlyUtf8 ? 'utf-8' : (best?.name ?? 'windows-1252'))
}

/**
 * The text of a file, without its byte order mark, or null when the file is binary. UTF-16, else UTF-8, then
 * what `guessEncoding` says.
 */
export const decodeText = (bytes: Uint8Array): string | null => {
  if (detectUtf16(bytes) === null && looksBinary(bytes)) return null
  const encoding = detectUtf16(bytes) === null && isValid('utf-8', bytes) ? 'utf-8' : guessEncoding(bytes)
  const decoder = new TextDecoder(encoding)
  // as a stream: at once, Node 20 decodes the bytes 0x80 to 0x9f of Windows-1252 as control characters
  return decoder.decode(bytes, { stream: true }) + decoder.decode()
}
