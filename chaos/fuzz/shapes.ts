import fc from 'fast-check'
import { sample } from '../../test/support/fake-model/sample.ts'

/** JSON Schema, as the document has it. */
export type Schema = Record<string, unknown>
/** A value for one field. `refused`: its schema says that it is past a limit, so the answer has to name the field. */
type Shape = { what: string; value: unknown; refused?: true }
/** A field of a body with its schema, by the names and indexes that lead to it. */
type Field = { path: readonly (string | number)[]; schema: Schema }

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The schema itself, and those of which it is any. */
const choicesOf = (schema: unknown, root: Schema): Schema[] => {
  if (!isSchema(schema)) return []
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return choicesOf((root.components as { schemas: Schema }).schemas[name], root)
  }
  const choices = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) =>
    Array.isArray(list) ? list : [],
  )
  return choices.length > 0 ? choices.flatMap((choice) => choicesOf(choice, root)) : [schema]
}

const maxDepth = 4

/** Every field of a body, down to a depth. */
const fieldsOf = (schema: unknown, root: Schema, path: Field['path'] = []): Field[] =>
  choicesOf(schema, root).flatMap((choice) => {
    if (path.length >= maxDepth) return [{ path, schema: choice }]
    const properties = isSchema(choice.properties) ? Object.entries(choice.properties) : []
    return [
      { path, schema: choice },
      ...properties.flatMap(([name, property]) => fieldsOf(property, root, [...path, name])),
      ...(choice.items ? fieldsOf(choice.items, root, [...path, 0]) : []),
      ...(isSchema(choice.additionalProperties)
        ? fieldsOf(choice.additionalProperties, root, [...path, 'constructor'])
        : []),
    ]
  })

const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', 'a\u0000b', '\ud800']
/** Longer than any text a field without a limit of its own is meant for. */
const longText = 300_000

const textShapes = ({ maxLength, minLength }: Schema): Shape[] => [
  ...names.map((value) => ({ what: JSON.stringify(value), value })),
  ...(typeof maxLength === 'number'
    ? ([
        { what: `a text of ${maxLength}`, value: 'x'.repeat(maxLength) },
        { what: `a text of ${maxLength + 1}`, value: 'x'.repeat(maxLength + 1), refused: true },
        { what: `NUL ${maxLength} times`, value: '\u0000'.repeat(Math.min(maxLength, longText)) },
      ] as const)
    : [{ what: 'a long text', value: 'x'.repeat(longText) }]),
  ...(typeof minLength === 'number' && minLength > 0
    ? [{ what: 'no text', value: '', refused: true as const }]
    : []),
]

const numberShapes = ({ type, minimum, maximum, exclusiveMinimum }: Schema): Shape[] => [
  ...[0, -1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1, 2 ** 53, 1e308, 5e-324].map((value) => ({
    what: `the number ${value}`,
    value,
  })),
  ...(typeof maximum === 'number'
    ? [
        { what: 'the largest', value: maximum },
        { what: 'one more than the largest', value: maximum + 1, refused: true as const },
      ]
    : []),
  ...(typeof minimum === 'number' && minimum > Number.MIN_SAFE_INTEGER
    ? [
        { what: 'the smallest', value: minimum },
        { what: 'one less than the smallest', value: minimum - 1, refused: true as const },
      ]
    : []),
  ...(typeof exclusiveMinimum === 'number'
    ? [{ what: 'what it has to be above', value: exclusiveMinimum, refused: true as const }]
    : []),
  ...(type === 'integer' ? [{ what: 'no integer', value: 1.5, refused: true as const }] : []),
]

const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
const wide = (count: number): Schema =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`zz${at}`, at % 2 ? null : 'v']))

const anyShapes: readonly Shape[] = [
  { what: '90 levels', value: deep(90) },
  { what: '99 keys', value: wide(99) },
  { what: '20,000 keys', value: wide(20_000) },
  { what: '20,000 items', value: Array(20_000).fill(null) },
  { what: 'the names of what objects have', value: Object.fromEntries(names.map((name) => [name, name])) },
  ...[null, true, '', 0, [], {}].map((value) => ({ what: JSON.stringify(value), value })),
]

const listShapes = (schema: Schema, root: Schema): Shape[] => {
  const item = sample(schema.items, root)
  const { maxItems } = schema
  return typeof maxItems === 'number' && maxItems < 10_000
    ? [{ what: `${maxItems + 1} items`, value: Array(maxItems + 1).fill(item), refused: true }]
    : [{ what: '5,000 items', value: Array(5000).fill(item) }]
}

const objectShapes = ({ maxProperties }: Schema): Shape[] =>
  typeof maxProperties === 'number'
    ? [{ what: `${maxProperties + 1} keys`, value: wide(maxProperties + 1), refused: true }]
    : []

/** Values at and past what the schema of a field says. */
export const shapesOf = (schema: Schema, root: Schema): readonly Shape[] => {
  const types = [schema.type].flat()
  return [
    ...(types.includes('string') && !schema.enum ? textShapes(schema) : []),
    ...(types.includes('integer') || types.includes('number') ? numberShapes(schema) : []),
    ...(types.includes('array') ? listShapes(schema, root) : []),
    ...(types.includes('object') ? objectShapes(schema) : []),
    ...anyShapes,
  ]
}

/** A copy of `body` with a value at a path; what is missing on the way is made. */
const withValue = (body: unknown, [step, ...rest]: Field['path'], value: unknown): unknown => {
  if (step === undefined) return value
  if (typeof step === 'number') {
    const list = Array.isArray(body) ? body : []
    return [withValue(list[0], rest, value), ...list.slice(1)]
  }
  const object = isSchema(body) ? body : {}
  return Object.fromEntries([
    ...Object.entries(object).filter(([name]) => name !== step),
    [step, withValue(Object.hasOwn(object, step) ? object[step] : undefined, rest, value)],
  ])
}

/** A body with one field of its schema at or past a limit; `at` where the answer has to name that field. */
export const shapedBodies = (
  valid: unknown,
  schema: Schema,
  root: Schema,
): fc.Arbitrary<{ what: string; value: unknown; at?: string }> => {
  const fields = fieldsOf(schema, root)
  // what its schema alone refuses is named only where no other choice of schemas takes it
  const isAlone = ({ path }: Field) =>
    fields.filter((other) => other.path.join('/') === path.join('/')).length === 1
  return fc.constantFrom(...fields).chain((field) =>
    fc.constantFrom(...shapesOf(field.schema, root)).map(({ what, value, refused }) => ({
      what: `${what} at /${field.path.join('/')}`,
      value: withValue(valid, field.path, value),
      ...(refused && field.path.length === 1 && isAlone(field) && { at: `/${field.path.join('/')}` }),
    })),
  )
}
