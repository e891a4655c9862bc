import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hasLongNumbers, parseExactJson } from '../../../src/state/text/exact-json.ts'

test('an integer of digits alone from 2^53 on, and what is too large for a number, is text', () => {
  const text = '[9007199254740991, 9007199254740992, -9007199254740993, 1e400, 1e21, 0.5]'
  const values = [9007199254740991, '9007199254740992', '-9007199254740993', '1e400', 1e21, 0.5]
  expect(parseExactJson(text)).toEqual(values)
})

test('digits within a text are not a long number', () => {
  const base64 = JSON.stringify({ content_base64: 'AA1234567890123456789e999/+12345678901234567890=' })
  expect(hasLongNumbers(base64)).toBe(false)
  expect(parseExactJson(base64)).toEqual(JSON.parse(base64))
})

test('a JSON text without a long number is read as JSON.parse reads it', () => {
  const digits = fc.stringMatching(/^-?[1-9]\d{0,20}(\.\d{1,18})?([eE][+-]?\d{1,4})?$/)
  fc.assert(
    fc.property(fc.array(fc.tuple(digits, fc.constantFrom('', ' ', '\n'))), (numbers) => {
      const text = `{"a": [${numbers.map(([number, space]) => space + number + space).join(',')}]}`
      const isSame = JSON.stringify(parseExactJson(text)) === JSON.stringify(JSON.parse(text))
      expect(hasLongNumbers(text) || isSame).toBe(true)
    }),
  )
})

test.each(['', '\\', '\\\\'])(
  'a string that does not end is passed over once, not from each of its quotes: %j',
  (end) => {
    // from each quote, half a megabyte takes minutes
    const text = `{"a": 1234567890123456, "b": "${'\\"'.repeat(250_000)}${end}`
    expect(() => parseExactJson(text)).toThrow(SyntaxError)
  },
)
