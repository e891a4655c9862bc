/** JSON is nested no deeper than this where it is walked. */
export const maxTokenDepth = 100

/** A value that has no canonical form. `path`: the member because of which. */
export class CanonicalJsonError extends TypeError {
  readonly path: (string | number)[] = []
}

/** A value that says what JSON has of it, as an exact number does. Nothing that was read from JSON is one. */
const hasOwnJson = (value: object): boolean => typeof (value as { toJSON?: unknown }).toJSON === 'function'

/**
 * The canonical JSON text of a value by RFC 8785: members sorted by UTF-16 code units, numbers and strings as ECMAScript writes
 * them. `withoutNulls` leaves out members that are null. Throws a `CanonicalJsonError` for what I-JSON cannot hold: numbers that are not
 * finite, half a surrogate pair, and more than 100 levels.
 */
export const toCanonicalJson = (value: unknown, { withoutNulls = false } = {}, depth = 0): string => {
  if (depth > maxTokenDepth) throw new CanonicalJsonError(`is nested deeper than ${maxTokenDepth} levels`)
  const write = (part: unknown, step: string | number): string => {
    try {
      return toCanonicalJson(part, { withoutNulls }, depth + 1)
    } catch (error) {
      if (error instanceof CanonicalJsonError) error.path.unshift(step)
      throw error
    }
  }
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
  if (typeof value === 'object' && value !== null && !hasOwnJson(value)) {
    const names = Object.keys(value).sort() as (keyof typeof value)[]
    const kept = names.filter((name) => value[name] !== undefined && !(withoutNulls && value[name] === null))
    return `{${kept.map((name) => `${write(name, name)}:${write(value[name], name)}`).join(',')}}`
  }
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new CanonicalJsonError(`has ${value}, which JSON has not`)
  if (typeof value === 'string' && !value.isWellFormed())
    throw new CanonicalJsonError('has half a surrogate pair')
  const text = JSON.stringify(value)
  if (text === undefined) throw new CanonicalJsonError(`has a ${typeof value}, which JSON has not`)
  return text
}
