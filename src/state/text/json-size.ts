import { measureJson, parseExactJson } from './exact-json.ts'

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
  const size = measureJson(text, limits)
  if (size.values + size.numbers > maxJsonValues || size.depth > maxJsonDepth)
    throw new SyntaxError(`more than ${maxJsonValues} values, or more than ${maxJsonDepth} deep`)
  return parseExactJson(text, size)
}

/** The value of JSON within these bounds; undefined for any other text. */
export const tryParseJson = (text: string): unknown => {
  try {
    return parseLimitedJson(text)
  } catch {
    return undefined
  }
}
