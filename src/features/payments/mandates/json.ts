import { isDeepStrictEqual } from 'node:util'
import { parseLimitedJson } from '../../../state/text/json-size.ts'

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

/** A number that may be no safe integer: with a sign, a fraction or an exponent, or long. Also where a string has one. */
const inexactNumber = /(?:^|[:,[])\s*(?:-|\d+[.eE]|\d{15})/

/** A shorter text can neither be deep nor hold many values: it needs no count. */
const shortJson = 1000

const tokens = /("[^"\\]*(?:\\.[^"\\]*)*(?:"|$))(\s*:)?|-?\d[\d.eE+-]*/g

/**
 * The value of a JSON text whose fractions keep their text (`JsonNumber`); safe integers are numbers. Throws a SyntaxError for
 * text that is no JSON, has more than 50,000 values or is more than 500 deep. Node 20 gives a reviver no source text, so every
 * string and number becomes a string that begins with its kind, which is taken off again.
 */
export const readJson = (text: string): unknown => {
  const value: unknown = text.length < shortJson ? JSON.parse(text) : parseLimitedJson(text)
  if (!inexactNumber.test(text)) return value
  const marked = text.replace(tokens, (token, string?: string, colon?: string) =>
    colon !== undefined ? token : string === undefined ? `"n${token}"` : `"s${string.slice(1)}`,
  )
  return unmark(JSON.parse(marked))
}

const unmark = (value: unknown): unknown => {
  if (typeof value === 'string') return value[0] === 's' ? value.slice(1) : toNumber(value.slice(1))
  if (typeof value !== 'object' || value === null) return value
  // each is there already, `__proto__` too
  const members = value as Record<string, unknown>
  for (const name of Object.keys(members)) members[name] = unmark(members[name])
  return value
}

const toNumber = (source: string): number | JsonNumber => {
  const number = Number(source)
  if (!Number.isFinite(number)) throw new SyntaxError(`the number ${source.slice(0, 50)} is too large`)
  return Number.isSafeInteger(number) && String(number) === source ? number : new JsonNumber(source)
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

/** The digits of a number, however it is written: `249.0`, `249` and `2.49e2` have the same, and no double is involved. */
const toDigits = (source: string): string => {
  const [, sign = '', whole = '', decimals = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(source) ?? []
  const digits = (whole + decimals).replace(/^0+/, '')
  const significant = digits.replace(/(?<!0)0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${BigInt(exponent) + BigInt(digits.length - significant.length - decimals.length)}`
}

const withDigits = (value: unknown): unknown => {
  if (value instanceof JsonNumber) return new JsonNumber(toDigits(value.source))
  if (typeof value === 'number') return new JsonNumber(toDigits(String(value)))
  if (Array.isArray(value)) return value.map(withDigits)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withDigits(member)]))
}

/** Whether two values are the same but for null members and for how numbers are written: `249.0` is `249`, digit for digit. */
export const isSameJson = (one: unknown, other: unknown): boolean =>
  isDeepStrictEqual(withDigits(omitNulls(one)), withDigits(omitNulls(other)))
