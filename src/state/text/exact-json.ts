/** Whether a JSON text may have a number that `parseExactJson` reads in another way than `JSON.parse`. */
export const hasLongNumbers = (text: string): boolean =>
  /(?:^|[:,[\s])-?(?:[1-9]\d{15}|\d[\d.]*[eE]\+?\d{3})/.test(text)

/** The text of JSON with the numbers quoted that `JSON.parse` would change. A string that does not end is one token, or each quote in it would be tried anew. */
export const quoteLongNumbers = (text: string): string =>
  text.replace(/"[^"\\]*(?:\\[\s\S]?[^"\\]*)*(?:"|$)|-?\d[\d.eE+-]*/g, (token, at: number) => {
    const number = Number(token)
    const isLong = token.length > 15 && /^-?[1-9]\d{15,}$/.test(token) && !Number.isSafeInteger(number)
    const isBeyond = Math.abs(number) === Infinity && /^-?(0|[1-9]\d*)(\.\d+)?([eE]\+?\d+)?$/.test(token)
    if (!isLong && !isBeyond) return token
    // a name that is no string is no JSON
    const isName = /^\s*:/.test(text.slice(at + token.length, at + token.length + 100))
    return isName ? token : `"${token}"`
  })

/**
 * The value of a JSON text, its digits exact: an integer written with digits alone, from 2^53 on, and what is too large for any
 * number (1e400) are the text as it is written; 1e21 stays a number. Throws a SyntaxError. It uses nothing but the two above, so
 * that a thread can be given its source.
 */
export const parseExactJson = (text: string): unknown =>
  JSON.parse(hasLongNumbers(text) ? quoteLongNumbers(text) : text)
