import { isDeepStrictEqual } from 'node:util'
import { parseLimitedJson } from '../../state/text/json-size.ts'

/** A number of a JSON text that is no plain safe integer, as it was written: `249.0`, `0.1`, `1e3`. */
export class JsonNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }

  /** As a double, for texts of others that `writeJson` does not make. */
  toJSON(): number {
    return Number(this.source)
  }
}

const tokens = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?\d[\d.eE+-]*/g

/**
 * The value of a JSON text whose fractions keep their text (`JsonNumber`); safe integers are numbers. Throws a SyntaxError for
 * text that is no JSON, has more than 50,000 values or is more than 500 deep. Node 20 gives a reviver no source text, so every
 * string and number becomes a string that begins with its kind, which the reviver takes off again.
 */
export const readJson = (text: string): unknown => {
  parseLimitedJson(text)
  const marked = text.replace(tokens, (token, string?: string, colon?: string) =>
    colon !== undefined ? token : string === undefined ? `"n${token}"` : `"s${string.slice(1)}`,
  )
  return JSON.parse(marked, (_, value: unknown) => {
    if (typeof value !== 'string') return value
    const rest = value.slice(1)
    if (value[0] === 's') return rest
    const number = Number(rest)
    if (!Number.isFinite(number)) throw new SyntaxError(`the number ${rest.slice(0, 50)} is too large`)
    return Number.isSafeInteger(number) && String(number) === rest ? number : new JsonNumber(rest)
  })
}

/** The JSON text of a value; numbers are written as `readJson` found them. */
export const writeJson = (value: unknown): string => {
  if (value instanceof JsonNumber) return value.source
  if (Array.isArray(value)) return `[${value.map((item) => writeJson(item ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeJson(member)}`).join(',')}}`
}

/** The value without members that are null: both forms of one mandate are on the wire (AP2.md 1.5, row 11). */
export const omitNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(omitNulls)
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => (member == null ? [] : [[name, omitNulls(member)]])),
  )
}

/** Whether two values are the same but for null members and for how numbers are written: `249.0` is `249`. */
export const isSameJson = (one: unknown, other: unknown): boolean => {
  const normalize = (value: unknown): unknown => {
    const text = JSON.stringify(omitNulls(value))
    return text === undefined ? undefined : JSON.parse(text)
  }
  return isDeepStrictEqual(normalize(one), normalize(other))
}
