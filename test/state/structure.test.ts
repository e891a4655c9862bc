import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkFieldValue, fieldJsonSchema } from '../../src/state/output-fields.ts'
import { type OutputType, outputTypeSchema } from '../../src/state/runtime-state.ts'

const good = (type: OutputType, value: unknown): unknown => {
  const checked = checkFieldValue(type, value)
  return checked.ok ? checked.value : `fault: ${checked.error}`
}
const fault = (type: OutputType, value: unknown): string => {
  const checked = checkFieldValue(type, value)
  return checked.ok ? `no fault: ${JSON.stringify(checked.value)}` : checked.error
}

describe('checking a field of the answer', () => {
  test.each<[OutputType, unknown, unknown]>([
    ['text', '', ''],
    ['number', 12.5, 12.5],
    ['number', '1,234.50', 1234.5],
    ['number', ' -1,234,567 ', -1_234_567],
    ['number', '1e3', 1000],
    ['number', '.5', 0.5],
    ['boolean', false, false],
    ['boolean', 'True', true],
    ['boolean', ' yes ', true],
    ['boolean', '是', true],
    ['boolean', '否', false],
    ['date', '2025-01-31', '2025-01-31'],
    ['date', '2025/1/3', '2025-01-03'],
    ['date', '2025年1月3日', '2025-01-03'],
    ['date', '2024-02-29', '2024-02-29'],
    ['date', '2025-01-03 9:05', '2025-01-03T09:05:00'],
    ['date', '2025-01-03t10:00:00.250z', '2025-01-03T10:00:00.250Z'],
    ['date', '2025-01-03T10:00:00+0800', '2025-01-03T10:00:00+08:00'],
    ['list', [1, 'a', { b: null }], [1, 'a', { b: null }]],
    ['table', { columns: ['a', 'b'], rows: [[1, 'x']] }, { columns: ['a', 'b'], rows: [[1, 'x']] }],
    [
      'table',
      [
        { a: 1, b: 'x' },
        { b: null, a: 2 },
      ],
      {
        columns: ['a', 'b'],
        rows: [
          [1, 'x'],
          [2, null],
        ],
      },
    ],
    ['table', [], { columns: [], rows: [] }],
    ['json', null, null],
    ['json', { a: [1] }, { a: [1] }],
  ])('%s takes %j', (type, value, kept) => expect(good(type, value)).toEqual(kept))

  test.each<[OutputType, unknown, string]>([
    ['text', 5, 'must be text, not 5'],
    ['text', undefined, 'must be text, not undefined'],
    ['number', '12 EUR', 'must be a number such as 1234.5, without units, not "12 EUR"'],
    ['number', '1,23', 'must be a number'],
    ['number', '', 'must be a number'],
    ['number', Number.NaN, 'must be a number'],
    ['number', '1e999', 'must be a number'],
    ['number', true, 'must be a number'],
    ['number', '12345678901234567890', 'more digits than a number can hold'],
    ['boolean', 'maybe', 'must be true or false, not "maybe"'],
    ['boolean', 1, 'must be true or false'],
    ['date', '2025-02-30', 'must be a date that exists'],
    ['date', '2025-13-01', 'must be a date that exists'],
    ['date', '2023-02-29', 'must be a date that exists'],
    ['date', '3/1/2025', 'must be a date that exists'],
    ['date', '2025-01-03T24:00', 'must be a date that exists'],
    ['date', '2025-01-03T10:00+99:00', 'must be a date that exists'],
    ['date', '2025-01/03', 'must be a date that exists'],
    ['date', 20250103, 'must be a date that exists'],
    ['list', 'a, b', 'must be a list'],
    ['list', [undefined], 'must be JSON'],
    ['table', { columns: ['a', 'b'], rows: [[1, 2], [1]] }, 'row 2 has 1 cells for 2 columns'],
    ['table', { columns: ['a'], rows: [], title: 'x' }, 'must be a table'],
    ['table', [{ a: 1 }, { b: 1 }], 'object 2 has other keys than the first'],
    ['table', [{ a: { b: 1 } }], 'flat objects'],
    ['table', 'a|b', 'must be a table'],
    ['json', () => 1, 'must be JSON'],
  ])('%s refuses %s', (type, value, text) => expect(fault(type, value)).toContain(text))

  test('every real day is taken in its one form, and no other day', () => {
    const part = fc.integer({ min: 1, max: 40 })
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 9999 }), part, part, (year, month, day) => {
        const date = new Date(Date.UTC(year, month - 1, day))
        const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
        const kept = checkFieldValue('date', `${year}/${month}/${day}`)
        expect(kept.ok && kept.value).toBe(exists && date.toISOString().slice(0, 10))
      }),
    )
  })

  test('what is kept is taken again, unchanged, whatever came in', () => {
    fc.assert(
      fc.property(fc.constantFrom(...outputTypeSchema.options), fc.anything(), (type, value) => {
        const checked = checkFieldValue(type, value)
        if (checked.ok) expect(checkFieldValue(type, checked.value)).toEqual(checked)
      }),
    )
  })

  test('numbers written with separators are the numbers', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (number) => {
        expect(good('number', number.toLocaleString('en-US'))).toBe(number)
      }),
    )
  })
})

test('a field has a JSON schema for each type', () => {
  for (const type of outputTypeSchema.options) expect(fieldJsonSchema(type)).toEqual(expect.any(Object))
  expect(fieldJsonSchema('table')).toMatchObject({ required: ['columns', 'rows'] })
})
