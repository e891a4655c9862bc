import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import calculate from '../../../src/features/calculate/calculate.tool.ts'
import { evaluateExpression } from '../../../src/features/calculate/expression.ts'
import { visitTool } from '../../support/tool-context.ts'

const computed = (expression: string): string => {
  const worked = evaluateExpression(expression)
  return worked.ok ? worked.value : `failure: ${worked.error}`
}
const faultOf = (expression: string): string => {
  const worked = evaluateExpression(expression)
  return worked.ok ? `no failure: ${worked.value}` : worked.error
}

describe('values', () => {
  test.each([
    ['0.1 + 0.2', '0.3'],
    ['12 * 3', '36'],
    ['7 - 10', '-3'],
    ['100 / 8', '12.5'],
    ['1 / 3', '0.3333333333333333333333333333333333'],
    ['-7 % 3', '2'],
    ['10 % 3', '1'],
    ['10%3', '1'],
    ['5.5 % 2', '1.5'],
    ['2 ^ 10', '1024'],
    ['2 ** 10', '1024'],
    ['2 ^ 3 ^ 2', '512'],
    ['-2 ^ 2', '-4'],
    ['2 ^ -2', '0.25'],
    ['1.05 ^ (1/12)', '1.004074123783648301605419602672107'],
    ['1000 * (1 + 0.035/12) ^ 360', '2853.287165195750866652450677729584'],
    ['2 + 3 * 4 - (5 - 6)', '15'],
    ['- - 3', '3'],
    ['12.5%', '0.125'],
    ['200 * 10%', '20'],
    ['50% - 3', '-2.5'],
    ['(40 + 10)%', '0.5'],
    ['1e3 + .5', '1000.5'],
    ['3 × 4 ÷ 2 − 1', '5'],
    ['99999999999999999999 * 99999999999999999999', '9999999999999999999800000000000000000001'],
  ])('%s = %s', (expression, value) => expect(computed(expression)).toBe(value))

  test.each([
    ['sum(19.99, 5.01, 0.1)', '25.1'],
    ['avg(1, 2)', '1.5'],
    ['min(3, -1, 2)', '-1'],
    ['max(3, -1, 2)', '3'],
    ['median(3, 1, 2, 10)', '2.5'],
    ['median(3, 1, 2)', '2'],
    ['count(5, 5, 5)', '3'],
    ['round(1.005, 2)', '1.01'],
    ['round(2.5)', '3'],
    ['round(-2.5)', '-3'],
    ['round(1250, -2)', '1300'],
    ['abs(-3.50)', '3.5'],
    ['sqrt(16) + floor(2.9) + ceil(2.1)', '9'],
    ['floor(-0.5)', '-1'],
    ['SUM(1, sum(2, 3))', '6'],
  ])('%s = %s', (expression, value) => expect(computed(expression)).toBe(value))

  test.each([
    ['1/3*3', '1'],
    ['1/3 + 1/3 + 1/3 - 1', '0'],
    ['floor(1/3*3)', '1'],
    ['round(1/3*3/2)', '1'],
    ['(1/7*7) % 1', '0'],
    ['sqrt(2)^2', '2'],
    ['8^(1/3)', '2'],
    ['2^(1/3*3)', '2'],
  ])('%s = %s, although a step on the way has no end', (expression, value) =>
    expect(computed(expression)).toBe(value),
  )

  test('large whole numbers are exact', () => {
    expect(computed('2^1000')).toBe((2n ** 1000n).toString())
    expect(computed('sqrt(2^200)')).toBe((2n ** 100n).toString())
    expect(computed('2^3000')).toMatch(/^1\.\d+e\+903$/)
  })
})

describe('errors name the position and the remedy', () => {
  test.each([
    ['4 / (2 - 2)', "at position 3, near '4 / (2 - 2)': Division by zero. Check the divisor."],
    ['5 % 0', 'at position 3'],
    ['1 + foo(2)', "at position 5, near '1 + foo(2)': Unknown name 'foo'. Known functions: sum, avg,"],
    ['pi', "Unknown name 'pi'"],
    ['constructor(1)', "Unknown name 'constructor'"],
    ['1,234.50 + 1', 'at position 1, near'],
    ['1,234.50 + 1', 'A number with thousands separators. Write 1234567.89'],
    ['(1,234 + 1)', "Unexpected ','. Commas stand only between"],
    ['round(1,234.5, 2)', 'round takes 1 or 2 numbers, not 3. Check the commas'],
    ['avg()', 'avg takes at least 1 number, not 0'],
    ['sum', "'sum' is a function"],
    ['2(3)', 'Put an operator before it'],
    ['1 2', "at position 3, near '1 2': Unexpected '2'"],
    ['(1 + 2', "at position 1, near '(1 + 2': A '(' is never closed"],
    ['1 + 2)', "at position 6, near '1 + 2)': Unexpected ')'"],
    ['1 +', 'The expression ends too early'],
    ['* 2', 'Put a number on both sides'],
    ['$5', 'no units or currency signs'],
    ['process.exit(1)', "Unknown name 'process.exit'"],
    ['sqrt(-1)', 'square root of a negative number'],
    ['(-8)^(1/3)', 'no power that is not whole'],
    ['0 ^ -1', 'Division by zero'],
    ['9^9^9^9', 'grows too large'],
    ['9.9 ^ 1e12', 'An exponent is too large'],
    ['1e999999', 'grows too large'],
    ['0.5^100000000', 'becomes too small'],
    ['round(1, 0.5)', 'whole number of places'],
    ['   ', 'ends too early'],
  ])('%s', (expression, failure) => expect(faultOf(expression)).toContain(failure))

  test('nesting deeper than 200 levels', () => {
    expect(computed(`${'('.repeat(200)}1${')'.repeat(200)}`)).toBe('1')
    for (const deep of [`${'('.repeat(50_000)}1`, `${'abs('.repeat(20_000)}1`, `${'2^'.repeat(40_000)}1`])
      expect(faultOf(deep)).toContain('Nested deeper than 200 levels')
    expect(computed(`${'-'.repeat(99_998)}1`)).toBe('1')
  })
})

describe('properties', () => {
  const cents = fc.integer({ min: -1e9, max: 1e9 })
  const money = (amount: number): string => (amount / 100).toFixed(2)

  test('money adds up to the cent', () => {
    fc.assert(
      fc.property(fc.array(cents, { minLength: 1, maxLength: 200 }), (amounts) => {
        const total = amounts.reduce((sum, amount) => sum + BigInt(amount), 0n)
        const expected = computed(`${total} / 100`)
        expect(computed(amounts.map((amount) => `(${money(amount)})`).join(' + '))).toBe(expected)
        expect(computed(`sum(${amounts.map(money).join(', ')})`)).toBe(expected)
      }),
    )
  })

  const expression = fc.letrec<{ whole: [string, bigint]; node: [string, bigint] }>((tie) => ({
    whole: fc
      .bigInt(-(10n ** 20n), 10n ** 20n)
      .map((n) => [n < 0n ? `(${n})` : `${n}`, n] as [string, bigint]),
    node: fc.oneof(
      { depthSize: 'small' },
      tie('whole'),
      fc
        .tuple(tie('node'), fc.constantFrom('+', '-', '*'), tie('node'))
        .map(([[a, x], sign, [b, y]]): [string, bigint] => [
          `(${a} ${sign} ${b})`,
          sign === '+' ? x + y : sign === '-' ? x - y : x * y,
        ]),
    ),
  })).node

  test('whole numbers agree with BigInt', () => {
    fc.assert(
      fc.property(expression, ([text, value]) => {
        fc.pre(value.toString().length < 300)
        expect(computed(text)).toBe(value.toString())
      }),
    )
  })

  test('the value of every sum is an expression of the same value', () => {
    fc.assert(
      fc.property(cents, cents, fc.constantFrom('+', '-', '*', '/', '%'), (a, b, sign) => {
        fc.pre(b !== 0)
        const value = computed(`(${money(a)}) ${sign} (${b})`)
        expect(computed(value)).toBe(value)
      }),
    )
  })

  test('any text gives a value or an error, never a crash', () => {
    const signs = fc.constantFrom(
      ...'0123456789.,+-*/%^() eE×'.split(''),
      'sum(',
      'round(',
      'x',
      '1e5',
      '😀',
      '\ud800',
    )
    const soup = fc.array(signs, { maxLength: 60 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.oneof(soup, fc.string()), (text) => {
        const worked = evaluateExpression(text)
        if (worked.ok) expect(worked.value).toMatch(/^-?\d+(\.\d+)?(e[+-]\d+)?$/)
        else expect(worked.error).toMatch(/^at position \d+, near '[\s\S]*': [\s\S]+\.$/)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('bounds of one call', () => {
  const filled = (part: string): string => `${part.repeat(Math.floor(99_998 / part.length))}1`

  test.each([
    '1.25+',
    '1/7+',
    '9*',
    'sqrt(2)+',
    '2^0.37+',
    '9^400*',
    '1e99999/7-',
    '-',
    '5%+',
    '1e99999%1.23+',
  ])('100,000 characters of %s are worked out or refused', (part) => {
    expect(typeof evaluateExpression(filled(part)).ok).toBe('boolean')
  })
})

describe('calculate', () => {
  test('writes the text, the value and a summary', async () => {
    const { text, action, isError } = await visitTool(calculate, { input: { expression: ' 12  *\n3 ' } })
    expect(text).toBe('12 * 3 = 36')
    expect(isError).toBe(false)
    expect(action).toMatchObject({
      node: 'calculate',
      summary: 'Computed 12 * 3 = 36',
      result: { text: '12 * 3 = 36', value: '36' },
      context: { type: 'text', content: '12 * 3 = 36', important: false, usage_type: 'analysis' },
      relevance: 0.5,
    })
  })

  test('cuts a long expression in its text', async () => {
    const { text, action } = await visitTool(calculate, { input: { expression: `1${'+1'.repeat(5000)}` } })
    expect(text).toMatch(/^[1+]{199}… = 5001$/)
    expect(action.summary.length).toBeLessThan(200)
  })

  test('an invalid expression is an error the model can act on', async () => {
    const { text, isError, action } = await visitTool(calculate, { input: { expression: '1 / 0' } })
    expect(text).toBe("Error: at position 3, near '1 / 0': Division by zero. Check the divisor.")
    expect(isError).toBe(true)
    expect(action).toMatchObject({ summary: 'Could not compute 1 / 0', context: null })
  })
})
