/** Whether a JSON text may have a number that `parseExactJson` reads in another way than `JSON.parse`. */
export const hasLongNumbers = (text: string): boolean =>
  /(?:^|[:,[\s])-?(?:[1-9]\d{15}|\d[\d.]*[eE]\+?\d{3})/.test(text)

/**
 * A JSON text with the numbers in quotes that `JSON.parse` would change. It uses nothing outside itself, so that a thread can be
 * given its source. A string that does not end is one token, or each quote in it would be tried anew.
 */
export const quoteLongNumbers = (text: string): string => {
  // that of hasLongNumbers
  if (!/(?:^|[:,[\s])-?(?:[1-9]\d{15}|\d[\d.]*[eE]\+?\d{3})/.test(text)) return text
  return text.replace(/"[^"\\]*(?:\\[\s\S]?[^"\\]*)*(?:"|$)|-?\d[\d.eE+-]*/g, (token, at: number) => {
    const number = Number(token)
    const isLong = token.length > 15 && /^-?[1-9]\d{15,}$/.test(token) && !Number.isSafeInteger(number)
    const isBeyond = Math.abs(number) === Infinity && /^-?(0|[1-9]\d*)(\.\d+)?([eE]\+?\d+)?$/.test(token)
    if (!isLong && !isBeyond) return token
    // a name that is no string is no JSON
    const isName = /^\s*:/.test(text.slice(at + token.length, at + token.length + 100))
    return isName ? token : `"${token}"`
  })
}

/**
 * The value of a JSON text, its digits exact: an integer written with digits alone, from 2^53 on, and what is too large for any
 * number (1e400) are the text as it is written; 1e21 stays a number. Throws a SyntaxError.
 */
export const parseExactJson = (text: string): unknown => JSON.parse(quoteLongNumbers(text))
