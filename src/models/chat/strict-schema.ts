import { isJsonObject } from '../../infra/lib/json-text.ts'

type Schema = Record<string, unknown>

const annotations = [
  '$schema',
  '$id',
  'title',
  'description',
  'type',
  'enum',
  'const',
  'anyOf',
  '$ref',
  '$defs',
]
const numberKeywords = ['multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum']

/** Which keywords each type may have beside the annotations. */
const keywordsByType: Record<string, readonly string[]> = {
  string: ['pattern', 'format'],
  number: numberKeywords,
  integer: numberKeywords,
  boolean: [],
  null: [],
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'minItems', 'maxItems'],
}

const formats = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
])

const maxLevels = 10
const maxProperties = 5000
const maxNameCharacters = 120_000
const maxEnumValues = 1000
/** An enum of more string values than the first has at most so many characters as the second. */
const largeEnum = { values: 250, characters: 15_000 }

type Counts = { properties: number; characters: number; enumValues: number }

/**
 * Whether a schema may be sent with `strict: true`; with any other, OpenAI answers 400.
 * Source: OpenAI's guide "Structured outputs", supported schemas. Patterns with look-around are no part of it either.
 *
 * @example
 * ```ts
 * isStrictSchema({ type: 'object', properties: {}, required: [], additionalProperties: false }) // true
 * isStrictSchema({ type: 'object', properties: { any: {} }, required: ['any'], additionalProperties: false }) // false
 * ```
 */
export const isStrictSchema = (schema: Schema): boolean => {
  if (schema.type !== 'object' || schema.anyOf !== undefined) return false
  const counts: Counts = { properties: 0, characters: 0, enumValues: 0 }
  const definitions = isJsonObject(schema.$defs) ? schema.$defs : {}
  const isRef = (ref: unknown): boolean =>
    ref === '#' ||
    (typeof ref === 'string' && /^#\/\$defs\/[^/]+$/.test(ref) && Object.hasOwn(definitions, ref.slice(8)))

  const fits = (value: unknown, level: number): boolean => {
    if (!isJsonObject(value) || level > maxLevels) return false
    const types = [value.type ?? []].flat()
    if (types.length === 0 && value.anyOf === undefined && value.$ref === undefined) return false
    if (!types.every((type) => typeof type === 'string' && Object.hasOwn(keywordsByType, type))) return false
    const allowed = new Set([
      ...annotations,
      ...types.flatMap((type) => keywordsByType[type as string] ?? []),
    ])
    if (!Object.keys(value).every((keyword) => allowed.has(keyword))) return false
    return (
      (value.$ref === undefined || isRef(value.$ref)) &&
      (value.anyOf === undefined ||
        (Array.isArray(value.anyOf) && value.anyOf.every((part) => fits(part, level)))) &&
      countValues(value, counts) &&
      (!types.includes('string') || fitsString(value)) &&
      (!types.includes('array') || fits(value.items, level + 1)) &&
      (!types.includes('object') || fitsObject(value, level))
    )
  }
  const fitsObject = (value: Schema, level: number): boolean => {
    const { properties, required } = value
    if (value.additionalProperties !== false || !isJsonObject(properties)) return false
    const names = Object.keys(properties)
    counts.properties += names.length
    counts.characters += countCharacters(names)
    const needed = new Set(Array.isArray(required) ? required : [])
    return names.every((name) => needed.has(name) && fits(properties[name], level + 1))
  }

  counts.characters += countCharacters(Object.keys(definitions))
  return (
    fits(schema, 1) &&
    Object.values(definitions).every((definition) => fits(definition, 1)) &&
    counts.properties <= maxProperties &&
    counts.characters <= maxNameCharacters &&
    counts.enumValues <= maxEnumValues
  )
}

const countCharacters = (texts: readonly unknown[]): number =>
  texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0)

/** Adds the values of `enum` and `const`; false where one enum is too large by itself. */
const countValues = (value: Schema, counts: Counts): boolean => {
  if (value.enum !== undefined && !Array.isArray(value.enum)) return false
  const values: unknown[] = value.enum ?? []
  const characters = countCharacters(values)
  counts.enumValues += values.length
  counts.characters += characters + countCharacters([value.const])
  return values.length <= largeEnum.values || characters <= largeEnum.characters
}

const fitsString = ({ format, pattern }: Schema): boolean =>
  (format === undefined || formats.has(format as string)) &&
  (pattern === undefined || (typeof pattern === 'string' && !/\(\?<?[=!]/.test(pattern)))
