import { tryParseJson } from './json-size.ts'

/** How many characters are read for each character of the text, in all: braces that are never closed cost no more. */
const maxReads = 20

/** Where the object that begins at `from` ends; -1: nowhere. */
const findObjectEnd = (text: string, from: number): number => {
  let open = 0
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === '"') {
      for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++
    } else if (char === '{') open++
    else if (char === '}' && --open === 0) return at + 1
  }
  return -1
}

/**
 * The JSON in a model's reply: the text itself, else the last of the balanced objects in it that fits. `accept` gives null for
 * one that does not fit. Words around it may have braces.
 *
 * @example
 * findJson('Using {a}: {"total": 36}', (value) => schema.safeParse(value).data ?? null)
 */
export const findJson = <Value>(text: string, accept: (value: unknown) => Value | null): Value | null => {
  const whole = tryParseJson(text)
  // some models write JSON as the text of a JSON string
  if (typeof whole === 'string') return findJson(whole, accept)
  const fitting = whole === undefined ? null : accept(whole)
  if (fitting !== null) return fitting
  const opening = /\{(?=\s*["}])/g
  let found: Value | null = null
  let reads = text.length * maxReads
  for (let match = opening.exec(text); match !== null && reads > 0; match = opening.exec(text)) {
    const end = findObjectEnd(text, match.index)
    reads -= (end < 0 ? text.length : end) - match.index
    const value = end < 0 ? undefined : tryParseJson(text.slice(match.index, end))
    const fitted = value === undefined ? null : accept(value)
    if (fitted === null) continue
    found = fitted
    opening.lastIndex = end
  }
  return found
}
