const maxDepth = 100
const maxValues = 500_000

const [quote, backslash, comma, openList, closeList, openObject, closeObject] = [
  0x22, 0x5c, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d,
]

/**
 * What makes JSON too costly to parse and check, seen in one pass over its bytes before anything is built from it, or
 * null. (32 MiB of opening brackets keep JSON.parse busy for six seconds; deep values overflow every recursion.)
 */
export const scanJson = (bytes: Buffer): string | null => {
  let depth = 0
  let values = 1
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) {
      at = endOfString(bytes, at + 1)
    } else if (byte === openList || byte === openObject) {
      values++
      if (++depth > maxDepth) return `nested deeper than ${maxDepth} levels`
    } else if (byte === closeList || byte === closeObject) {
      depth--
    } else if (byte === comma && ++values > maxValues) {
      return `more than ${maxValues} values`
    }
  }
  return null
}

/** The place of the quote that ends a string; the end of the bytes when nothing does. */
const endOfString = (bytes: Buffer, start: number): number => {
  for (let at = bytes.indexOf(quote, start); at >= 0; at = bytes.indexOf(quote, at + 1)) {
    let escapes = 0
    while (at - escapes > start && bytes[at - escapes - 1] === backslash) escapes++
    if (escapes % 2 === 0) return at
  }
  return bytes.length
}
