import { JsonNumber } from '../json.ts'

/** JSON is nested no deeper than this where it is walked. */
export const maxTokenDepth = 100

/**
 * The canonical JSON text of a value by RFC 8785: members sorted by UTF-16 code units, numbers and strings as ECMAScript writes
 * them. `withoutNulls` leaves out members that are null. Throws a TypeError for what I-JSON cannot hold: numbers that are not
 * finite, half a surrogate pair, and more than 100 levels.
 */
export const toCanonicalJson = (value: unknown, { withoutNulls = false } = {}, depth = 0): string => {
  if (depth > maxTokenDepth) throw new TypeError(`is nested deeper than ${maxTokenDepth} levels`)
  const write = (part: unknown): string => toCanonicalJson(part, { withoutNulls }, depth + 1)
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
  if (typeof value === 'object' && value !== null && !(value instanceof JsonNumber)) {
    const names = Object.keys(value).sort() as (keyof typeof value)[]
    const kept = names.filter((name) => value[name] !== undefined && !(withoutNulls && value[name] === null))
    return `{${kept.map((name) => `${write(name)}:${write(value[name])}`).join(',')}}`
  }
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new TypeError(`has ${value}, which JSON has not`)
  if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('has half a surrogate pair')
  const text = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`has a ${typeof value}, which JSON has not`)
  return text
}
