import { parseExactJson } from './exact-json.ts'

/**
 * What a JSON text holds: `numbers` are those in lists, `values` all else, `names` the different names of fields. An estimate
 * where the text is not JSON.
 */
export type JsonSize = { values: number; numbers: number; depth: number; names: number }

/**
 * Counts without parsing, until there is more than `max` of something; names only where `max` has them. It uses nothing
 * outside itself, so that a thread can be given its source.
 */
export const measureJson = (text: string, max: Partial<JsonSize> = {}): JsonSize => {
  const { values: maxValues = Infinity, depth: maxDepth = Infinity, names: maxNames = Infinity } = max
  const names = new Set<string>()
  let values = 1
  let numbers = 0
  let depth = 0
  let open = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) {
      const begin = at
      // to the end of the string: at once, where it has no escape
      const end = text.indexOf('"', at + 1)
      if (end === -1) break
      if (text.charCodeAt(end - 1) !== 0x5c) at = end
      else
        for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++)
          if (text.charCodeAt(at) === 0x5c) at++
      if (max.names === undefined) continue
      let next = at + 1
      while (text.charCodeAt(next) <= 0x20) next++
      if (text.charCodeAt(next) === 0x3a) names.add(text.slice(begin, at))
      at = next - 1
    } else if (code === 0x5b || code === 0x7b) {
      values++
      open++
      if (open > depth) depth = open
    } else if (code === 0x5d || code === 0x7d) open--
    else if (code === 0x2c) {
      const next = text.charCodeAt(at + 1)
      if (next <= 0x39 && next >= 0x2d) numbers++
      else values++
    } else continue
    if (values + numbers > maxValues || depth > maxDepth || names.size > maxNames) break
  }
  return { values, numbers, depth, names: names.size }
}

/** More than what a model or a request ever has, and little enough to be read and validated without a pause. */
export const maxJsonValues = 50_000
/** Deeper values end a function that walks through them with an overflow of the stack. */
export const maxJsonDepth = 500

const limits = { values: maxJsonValues, depth: maxJsonDepth }

/** How many values a JSON text has, numbers in lists too; one that is too large or too deep is not counted to its end. */
export const countJsonValues = (text: string): number => {
  const { values, numbers } = measureJson(text, limits)
  return values + numbers
}

/** The value of a JSON text of limited size, its digits exact. Throws a SyntaxError for any other text. */
export const parseLimitedJson = (text: string): unknown => {
  const { values, numbers, depth } = measureJson(text, limits)
  if (values + numbers > maxJsonValues || depth > maxJsonDepth)
    throw new SyntaxError(`more than ${maxJsonValues} values, or more than ${maxJsonDepth} deep`)
  return parseExactJson(text)
}

/** The value of JSON within these bounds; undefined for any other text. */
export const tryParseJson = (text: string): unknown => {
  try {
    return parseLimitedJson(text)
  } catch {
    return undefined
  }
}
