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
    return /^(?:0|-?[1-9]\d*)$/.test(rest) && Number.isSafeInteger(Number(rest))
      ? Number(rest)
      : new JsonNumber(rest)
  })
}

/** The JSON text of a value; numbers are written as `readJson` found them. Members that are null or undefined are left out. */
export const writeJson = (value: unknown): string => {
  if (value instanceof JsonNumber) return value.source
  if (Array.isArray(value)) return `[${value.map((item) => writeJson(item ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== null && member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeJson(member)}`).join(',')}}`
}
