import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  JsonNumber,
  omitNulls,
  readJson,
  writeJson,
} from '../../../../src/features/payments/mandates/json.ts'
import {
  currencyExponents,
  formatMoney,
  parseMinor,
  parseMoney,
} from '../../../../src/features/payments/mandates/money.ts'

/** What a merchant's JSON says, read as a mandate is read. */
const readAmount = (source: string, currency: string) =>
  parseMoney((readJson(`{"value":${source}}`) as { value: unknown }).value, currency)

describe('a JSON text', () => {
  test('is read with the text of its fractions', () => {
    expect(
      readJson('{"a": 249.0, "b": [0.1, 7, -3], "s": "1.5 \\"x\\" \\u00010.1", "1.5": null, "e": 1E3}'),
    ).toEqual({
      a: new JsonNumber('249.0'),
      b: [new JsonNumber('0.1'), 7, -3],
      s: '1.5 "x" \u00010.1',
      '1.5': null,
      e: new JsonNumber('1E3'),
    })
    expect(readJson('9007199254740993')).toEqual(new JsonNumber('9007199254740993'))
  })

  test('is read as JSON.parse does, but for its fractions', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, null, 1)
        expect(JSON.parse(JSON.stringify(readJson(text)))).toEqual(JSON.parse(text))
      }),
      { numRuns: 300 },
    )
  })

  test('is written with the same numbers', () => {
    const value = readJson('{"a": 249.00, "b": [null, 1e3, {"c": null}], "d": null, "e": "x\\n"}')
    expect(writeJson(value)).toBe('{"a":249.00,"b":[null,1e3,{"c":null}],"d":null,"e":"x\\n"}')
    expect(writeJson(omitNulls(value))).toBe('{"a":249.00,"b":[null,1e3,{}],"e":"x\\n"}')
  })

  test('is refused where it is no JSON or too deep', () => {
    for (const text of [
      '',
      '{"a":01}',
      '{"a":1.}',
      '[1,]',
      '1e400',
      '["n1" "s"]',
      '['.repeat(600) + ']'.repeat(600),
    ])
      expect(() => readJson(text)).toThrow(SyntaxError)
  })
})

describe('money', () => {
  test('is minor units by the exponent of its currency', () => {
    expect(readAmount('603.49', 'USD')).toEqual({ currency: 'USD', minor: 60349 })
    expect(readAmount('249.0', 'USD')).toEqual({ currency: 'USD', minor: 24900 })
    expect(readAmount('1500.0', 'JPY')).toEqual({ currency: 'JPY', minor: 1500 })
    expect(readAmount('0.125', 'KWD')).toEqual({ currency: 'KWD', minor: 125 })
    expect(readAmount('"0.1"', 'USD')).toEqual({ currency: 'USD', minor: 10 })
    expect(readAmount('0', 'UYW')).toEqual({ currency: 'UYW', minor: 0 })
    expect(currencyExponents.size).toBeGreaterThan(160)
  })

  test.each([
    ['1.5', 'JPY', 'too_many_decimals'],
    ['603.495', 'USD', 'too_many_decimals'],
    ['0.30000000000000004', 'USD', 'too_many_decimals'],
    ['1', 'usd', 'unknown_currency'],
    ['1', 'XXX', 'unknown_currency'],
    ['1', 'constructor', 'unknown_currency'],
    ['-1', 'USD', 'negative_amount'],
    ['-0.0', 'USD', 'negative_amount'],
    ['90071992547409.92', 'USD', 'amount_too_large'],
    ['9007199254740992', 'JPY', 'amount_too_large'],
    ['1e2', 'USD', 'invalid_amount'],
    ['"1,000.00"', 'USD', 'invalid_amount'],
    ['" 1"', 'USD', 'invalid_amount'],
    ['null', 'USD', 'invalid_amount'],
    ['{}', 'USD', 'invalid_amount'],
  ])('of %s %s is refused as %s', (source, currency, code) => {
    expect(readAmount(source, currency)).toMatchObject({ code, message: expect.stringMatching(/./) })
  })

  test('below 2^53 minor units is exact, and the next one is refused', () => {
    expect(readAmount('90071992547409.91', 'USD')).toEqual({ currency: 'USD', minor: 2 ** 53 - 1 })
    expect(parseMinor(2 ** 53 - 1, 'USD')).toEqual({ currency: 'USD', minor: 2 ** 53 - 1 })
    expect(parseMinor(2 ** 53, 'USD')).toMatchObject({ code: 'amount_too_large' })
  })

  test('is never parsed from a double with a fraction', () => {
    expect(parseMoney(0.1, 'USD')).toMatchObject({ code: 'invalid_amount' })
    expect(parseMinor(199.5, 'USD')).toMatchObject({ code: 'invalid_amount' })
  })

  test('survives being written and read, in every currency', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...currencyExponents.keys()),
        fc.nat({ max: Number.MAX_SAFE_INTEGER }),
        (currency, minor) => {
          const written = formatMoney({ currency, minor })
          expect(readAmount(written, currency)).toEqual({ currency, minor })
          expect(parseMinor(minor, currency)).toEqual({ currency, minor })
        },
      ),
      { numRuns: 500 },
    )
  })
})
