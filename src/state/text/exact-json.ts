/**
 * What a JSON text holds: `numbers` are those in lists, `values` all else, `names` the different names of fields (Infinity where one is
 * longer than `nameLength`), `long` where numbers begin that `JSON.parse` may change. An estimate where the text is not JSON.
 */
export type JsonSize = { values: number; numbers: number; depth: number; names: number; long: number[] }

/** What may be in a JSON text at most. `nameLength`: characters of a name of a field, as written. */
type JsonLimits = Partial<JsonSize> & { nameLength?: number }

/**
 * Counts without parsing, until there is more than `max` of something; names only where `max` has them. It yields after each
 * `stepLength` characters, and uses nothing outside itself, so that a thread can be given its source.
 */
export function* scanJson(text: string, max: JsonLimits = {}, stepLength = Infinity) {
  const { values = Infinity, depth = Infinity, names = Infinity, nameLength = Infinity } = max
  const size: JsonSize = { values: 1, numbers: 0, depth: 0, names: 0, long: [] }
  const number = /\d[\d.eE+-]*/y
  const longNumber = /[1-9]\d{15}|\d[\d.]*[eE]\+?\d{3}/y
  const known = new Set<string>()
  let [open, begin, end, isText] = [0, 0, 0, false]
  for (let at = 0, stop = Math.min(stepLength, text.length); at < text.length; at++) {
    if (at >= stop) {
      stop = Math.min(at + stepLength, text.length)
      yield
    }
    if (isText) {
      while (at < stop && text.charCodeAt(at) !== 0x22) at += text.charCodeAt(at) === 0x5c ? 2 : 1
      isText = at >= stop
      end = isText ? at-- : at
      continue
    }
    const code = text.charCodeAt(at)
    if (code === 0x22) {
      begin = at
      // to the end of the string: at once, where it has no escape
      end = text.indexOf('"', at + 1)
      isText = text.charCodeAt(end - 1) === 0x5c
      if (!isText) at = end === -1 ? text.length : end
    } else if (code === 0x5b || code === 0x7b) {
      size.values++
      size.depth = Math.max(size.depth, ++open)
    } else if (code === 0x5d || code === 0x7d) open--
    else if (code === 0x2c) {
      const next = text.charCodeAt(at + 1)
      size[next <= 0x39 && next >= 0x2d ? 'numbers' : 'values']++
    } else if (code === 0x3a && max.names !== undefined && text.slice(end, at).trimEnd() === '"') {
      if (end - begin - 1 <= nameLength) size.names = known.add(text.slice(begin, end)).size
      else if (!text.slice(0, begin).trimEnd().endsWith(':')) size.names = Infinity
    } else if (code >= 0x30 && code <= 0x39) {
      number.lastIndex = longNumber.lastIndex = at
      number.test(text)
      if (number.lastIndex - at > 4 && longNumber.test(text))
        size.long.push(text[at - 1] === '-' ? at - 1 : at)
      at = number.lastIndex - 1
    } else continue
    const count = size.values + size.numbers
    // what has more numbers than values is no JSON
    if (count > values || count < size.long.length || size.depth > depth || size.names > names) break
  }
  return size
}

/** The same in one go. */
export const measureJson = (text: string, max = {}) => scanJson(text, max).next().value as JsonSize

/** A JSON text with the numbers in quotes that `JSON.parse` would change, of those that begin at `places`. */
export const quoteNumbers = (text: string, places: readonly number[]): string => {
  let [quoted, from] = ['', 0]
  for (const at of places) {
    const [token = ''] = /^-?\d[\d.eE+-]*/.exec(text.slice(at)) ?? []
    const isExact = /[.eE]/.test(token) ? Number.isFinite : Number.isSafeInteger
    quoted += text.slice(from, at) + (isExact(Number(token)) ? token : `"${token}"`)
    from = at + token.length
  }
  return quoted + text.slice(from)
}

/** Whether a JSON text may have a number that `parseExactJson` reads in another way than `JSON.parse`. */
export const hasLongNumbers = (text: string): boolean =>
  /(?:^|[:,[\s])-?(?:[1-9]\d{15}|\d[\d.]*[eE]\+?\d{3})/.test(text)

/**
 * The value of a JSON text, which may have been measured, its digits exact: an integer written with digits alone, from 2^53 on, and
 * what is too large for any number (1e400) are the text as it is written; 1e21 stays a number. Throws a SyntaxError.
 */
export const parseExactJson = (text: string, size = hasLongNumbers(text) && measureJson(text)): unknown => {
  // what is no JSON might be some with quotes
  const value = JSON.parse(text)
  return size && size.long.length > 0 ? JSON.parse(quoteNumbers(text, size.long)) : value
}
