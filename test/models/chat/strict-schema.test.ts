import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isStrictSchema } from '../../../src/models/chat/strict-schema.ts'
import { fieldJsonSchema } from '../../../src/state/output-fields.ts'
import type { OutputType } from '../../../src/state/runtime-state.ts'

type Schema = Record<string, unknown>

const closed = (properties: Schema, more: Schema = {}): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})
const nest = (levels: number): Schema => (levels === 0 ? closed({}) : closed({ next: nest(levels - 1) }))
const names = (count: number, length = 0): string[] =>
  Array.from({ length: count }, (_, at) => `v${at}`.padEnd(length, '_'))
const fields = (count: number): Schema =>
  Object.fromEntries(names(count).map((name) => [name, { type: 'null' }]))

describe('strict: true is sent for schemas that the published rules allow', () => {
  test.for<[string, Schema]>([
    [
      'every type',
      closed(
        Object.fromEntries(
          ['string', 'number', 'integer', 'boolean', 'null'].map((type) => [type, { type }]),
        ),
      ),
    ],
    ['a type or null', closed({ a: { type: ['string', 'null'], description: 'what it is' } })],
    [
      'limits of numbers and lists',
      closed({
        a: { type: 'integer', minimum: 1, multipleOf: 2 },
        b: { type: 'array', items: { type: 'string' }, minItems: 1 },
      }),
    ],
    [
      'a format and a pattern',
      closed({ a: { type: 'string', format: 'date-time' }, b: { type: 'string', pattern: '^(?:a|b)+$' } }),
    ],
    ['anyOf below the root', closed({ a: { anyOf: [{ type: 'string' }, closed({ b: { type: 'null' } })] } })],
    [
      'definitions that refer to themselves',
      closed(
        { a: { $ref: '#/$defs/node' } },
        { $defs: { node: closed({ next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } }) } },
      ),
    ],
    ['10 levels', nest(9)],
    ['5,000 properties', closed(fields(5000))],
    [
      '1,000 values of enums',
      closed({ a: { type: 'string', enum: names(500) }, b: { type: 'string', enum: names(500) } }),
    ],
    [
      'an object of zod',
      z.toJSONSchema(
        z.strictObject({ id: z.uuid().nullable(), kind: z.enum(['a', 'b']), n: z.int().max(9) }),
      ),
    ],
  ])('%s', ([, schema]) => {
    expect(isStrictSchema(schema)).toBe(true)
  })
})

describe('strict: true is not sent for', () => {
  test.for<[string, Schema]>([
    ['a root that is no object', { type: 'array', items: { type: 'string' } }],
    ['anyOf at the root', closed({}, { anyOf: [closed({})] })],
    ['an open object', { type: 'object', properties: {}, required: [] }],
    [
      'an open object inside',
      closed({ a: { type: 'object', properties: {}, required: [], additionalProperties: true } }),
    ],
    ['an object without properties', closed({ a: { type: 'object', additionalProperties: false } })],
    ['an optional property', closed({ a: { type: 'string' } }, { required: [] })],
    ['a schema without a type', closed({ a: {} })],
    ['a list of anything', closed({ a: { type: 'array', items: {} } })],
    ['a list without items', closed({ a: { type: 'array' } })],
    ['an enum without a type', closed({ a: { enum: ['x'] } })],
    ['an unknown type', closed({ a: { type: 'date' } })],
    ['a keyword of another type', closed({ a: { type: 'string', minimum: 1 } })],
    ...[
      'allOf',
      'not',
      'if',
      'then',
      'else',
      'dependentRequired',
      'dependentSchemas',
      'oneOf',
      'default',
      'minLength',
      'maxLength',
      'patternProperties',
      'uniqueItems',
    ].map((keyword): [string, Schema] => [
      `the keyword ${keyword}`,
      closed({ a: { type: 'string', [keyword]: {} } }),
    ]),
    ['an unknown format', closed({ a: { type: 'string', format: 'uri' } })],
    ['a pattern with look-ahead', closed({ a: { type: 'string', pattern: '^(?!x)' } })],
    ['a pattern with look-behind', closed({ a: { type: 'string', pattern: '(?<=x)y' } })],
    ['a reference to nothing', closed({ a: { $ref: '#/$defs/gone' } })],
    ['a reference outside the definitions', closed({ a: { $ref: 'https://example.com/schema' } })],
    ['a definition that does not fit', closed({}, { $defs: { any: {} } })],
    ['11 levels', nest(10)],
    ['5,001 properties', closed(fields(5001))],
    [
      'over 120,000 characters of names',
      closed(Object.fromEntries(names(1300, 100).map((name) => [name, { type: 'null' }]))),
    ],
    [
      '1,001 values of enums',
      closed({ a: { type: 'string', enum: names(501) }, b: { type: 'string', enum: names(500) } }),
    ],
    ['251 values of over 15,000 characters', closed({ a: { type: 'string', enum: names(251, 60) } })],
  ])('%s', ([, schema]) => {
    expect(isStrictSchema(schema)).toBe(false)
  })

  test('of the types of a structured answer, list and json have no strict schema', () => {
    const types: OutputType[] = ['text', 'number', 'boolean', 'date', 'list', 'table', 'json']
    const loose = types.filter((type) => !isStrictSchema(closed({ a: fieldJsonSchema(type) })))
    expect(loose).toEqual(['list', 'json'])
  })
})
