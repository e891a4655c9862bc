import type { Json } from '../../../state/runtime-state.ts'
import { isRecord } from './read-request.ts'

/** Values for a JSON Schema: given ones where they fit, else the smallest valid one. */

type Schema = Record<string, unknown>

/** The schema of a chat request's response_format, or null. */
export const schemaOf = (body: unknown): Schema | null => {
  const format = isRecord(body) && isRecord(body.response_format) ? body.response_format : null
  const wrapped = format && isRecord(format.json_schema) ? format.json_schema : null
  return wrapped && isRecord(wrapped.schema) ? wrapped.schema : null
}

/** Follows `$ref` inside the same schema; anything else comes back as it is. */
export const follow = (schema: unknown, root: Schema): Schema => {
  let current: unknown = schema
  for (let step = 0; step < 10 && isRecord(current) && typeof current.$ref === 'string'; step++) {
    let target: unknown = root
    for (const key of current.$ref
      .replace(/^#\/?/, '')
      .split('/')
      .filter((part) => part !== ''))
      target = isRecord(target) ? target[key] : undefined
    current = target
  }
  return isRecord(current) ? current : {}
}

export const propertiesOf = (schema: Schema, root: Schema): Record<string, Schema> => {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  return Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, follow(value, root)]))
}

const options = (schema: Schema): unknown[] =>
  Array.isArray(schema.anyOf) ? schema.anyOf : Array.isArray(schema.oneOf) ? schema.oneOf : []

export const typesOf = (schema: Schema, root: Schema, depth = 0): string[] => {
  if (typeof schema.type === 'string') return [schema.type]
  if (Array.isArray(schema.type)) return schema.type.map(String)
  if (depth > 8) return []
  return options(schema).flatMap((option) => typesOf(follow(option, root), root, depth + 1))
}

export const allowsNull = (schema: Schema, root: Schema): boolean => typesOf(schema, root).includes('null')

/** The smallest value a schema accepts, as far as rules can tell. */
export const minimal = (given: unknown, root: Schema, depth = 0): Json => {
  const schema = follow(given, root)
  if (schema.const !== undefined) return schema.const as Json
  if (schema.default !== undefined) return schema.default as Json
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0] as Json
  const types = typesOf(schema, root)
  if (types.includes('null') || depth > 12) return null
  const option = options(schema)[0]
  if (option !== undefined && schema.type === undefined) return minimal(option, root, depth + 1)
  switch (types[0]) {
    case 'string':
      return schema.format === 'date' ? '1970-01-01' : ''.padEnd(small(schema.minLength), '-')
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 0
    case 'boolean':
      return false
    case 'array':
      return Array.from({ length: small(schema.minItems) }, () => minimal(schema.items, root, depth + 1))
    default:
      return isRecord(schema.properties)
        ? fillObject({}, schema, root, depth + 1)
        : types[0] === 'object'
          ? {}
          : null
  }
}

const small = (value: unknown): number => (typeof value === 'number' ? Math.max(0, Math.min(100, value)) : 0)

const kindOf = (value: Json): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'array'
      : typeof value === 'number' && Number.isInteger(value)
        ? 'integer'
        : typeof value

/** Whether a value has one of the types a schema asks for; no types means anything goes. */
export const fits = (value: Json, schema: Schema, root: Schema): boolean => {
  const types = typesOf(schema, root)
  if (Array.isArray(schema.enum) && !schema.enum.includes(value)) return false
  const kind = kindOf(value)
  return types.length === 0 || types.includes(kind) || (kind === 'integer' && types.includes('number'))
}

/** Known values by property name where they fit; every other required or listed property gets its smallest value. */
export const fillObject = (
  known: Record<string, Json>,
  schema: Schema,
  root: Schema,
  depth = 0,
): Record<string, Json> => {
  const properties = propertiesOf(schema, root)
  const names = Object.keys(properties)
  if (names.length === 0) return known
  return Object.fromEntries(
    names.map((name): [string, Json] => {
      const property = properties[name] ?? {}
      const value = known[name]
      return [
        name,
        value !== undefined && fits(value, property, root) ? value : minimal(property, root, depth + 1),
      ]
    }),
  )
}
