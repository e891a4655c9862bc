import { Decimal } from 'decimal.js'

/** An invalid expression: what is wrong, the remedy, and where (0-based), unless a step is invalid. Never leaves `calculate`. */
export class CalculationError extends Error {
  readonly remedy: string
  readonly at: number | undefined

  constructor(message: string, remedy: string, at?: number) {
    super(message)
    this.remedy = remedy
    this.at = at
  }
}

/**
 * Numbers of `calculate`: decimals that know whether they are exact. Sums, products, powers and quotients that end
 * stay exact up to 400 digits; all else is worked out to 100 digits (roots and fractional powers to 60), so that
 * 34 right ones can be printed, and floor((1 / 3) * 3) is 1.
 */

const exactDigits = 400
const settledDigits = 50
const displayDigits = 34
const maxExponent = 100_000

const common = { rounding: Decimal.ROUND_HALF_UP, modulo: Decimal.ROUND_FLOOR, defaults: true } as const
const Exact = Decimal.clone({ ...common, precision: exactDigits })
const Rough = Decimal.clone({ ...common, precision: 100 })
const Root = Decimal.clone({ ...common, precision: 60 })

/** A number, and whether no digit of it was rounded. */
export type DecimalValue = { number: Decimal; exact: boolean }

const inRange = (number: Decimal, exact: boolean): DecimalValue => {
  if (!number.isFinite() || (!number.isZero() && number.e > maxExponent))
    throw new CalculationError('A number grows too large', `Keep numbers below 10^${maxExponent}.`)
  if (!number.isZero() && number.e < -maxExponent)
    throw new CalculationError('A number becomes too small', `Keep numbers above 10^-${maxExponent}.`)
  return { number, exact }
}

/** The value as it is meant: without the last digits of a number that is not exact. */
const roundToSettled = ({ number, exact }: DecimalValue): Decimal =>
  exact ? number : number.toSignificantDigits(settledDigits)

/** A decimal literal or a JavaScript number. Throws CalculationError where it is out of range. */
export const toDecimal = (literal: string | number): DecimalValue => inRange(new Exact(literal), true)
/** -a */
export const negate = ({ number, exact }: DecimalValue): DecimalValue => ({ number: number.neg(), exact })
const isZero = (value: DecimalValue): boolean => roundToSettled(value).isZero()
const compare = (a: DecimalValue, b: DecimalValue): number => a.number.comparedTo(b.number)

/** Digits from the first of the larger to the last of the smaller number: what their exact sum may need. */
const span = (a: Decimal, b: Decimal): number =>
  Math.max(a.e, b.e) + 1 - Math.min(a.e - a.precision(), b.e - b.precision())

/** a + b */
export const add = (a: DecimalValue, b: DecimalValue): DecimalValue => {
  if (a.number.isZero()) return b
  if (b.number.isZero()) return a
  if (a.exact && b.exact && span(a.number, b.number) <= exactDigits)
    return inRange(Exact.add(a.number, b.number), true)
  const sum = Rough.add(a.number, b.number)
  // what two rough numbers leave when they cancel out is their error, not a number
  const isResidue = sum.e < Math.max(a.number.e, b.number.e) - settledDigits
  return inRange(isResidue ? new Rough(0) : sum, false)
}

/** a - b */
export const subtract = (a: DecimalValue, b: DecimalValue): DecimalValue => add(a, negate(b))

/** a * b */
export const multiply = (a: DecimalValue, b: DecimalValue): DecimalValue => {
  const exact = a.exact && b.exact && a.number.precision() + b.number.precision() <= exactDigits
  return inRange((exact ? Exact : Rough).mul(a.number, b.number), exact)
}

/** a / b. Throws CalculationError for b = 0. */
export const divide = (a: DecimalValue, b: DecimalValue): DecimalValue => {
  if (isZero(b)) throw new CalculationError('Division by zero', 'Check the divisor.')
  if (a.exact && b.exact) {
    const quotient = Exact.div(a.number, b.number)
    const checkable = quotient.precision() + b.number.precision() <= exactDigits
    if (checkable && Exact.mul(quotient, b.number).eq(a.number)) return inRange(quotient, true)
  }
  return inRange(Rough.div(a.number, b.number), false)
}

/** The remainder with the sign of the divisor, as in Python and spreadsheets: -7 % 3 = 2. */
export const modulo = (a: DecimalValue, b: DecimalValue): DecimalValue => {
  if (isZero(b)) throw new CalculationError('Remainder of a division by zero', 'Check the divisor.')
  const [dividend, divisor] = [roundToSettled(a), roundToSettled(b)]
  if (!dividend.isZero() && span(dividend, divisor) > exactDigits)
    throw new CalculationError(
      'The two numbers are too far apart for a remainder',
      'Keep them within 400 digits of each other.',
    )
  return inRange(Exact.mod(dividend, divisor), a.exact && b.exact)
}

/** Upper bound of the digits of `base ^ exponent`: the exponent times the logarithm of the base's digits. */
const powerDigits = (base: Decimal, exponent: number): number => {
  const mantissa = Number(base.abs().toExponential(14).split('e')[0])
  return exponent * (base.precision() - 1 + Math.log10(mantissa)) + 1
}

const wholePower = (base: DecimalValue, exponent: Decimal): DecimalValue => {
  const size = exponent.abs()
  if (!base.number.isZero() && size.gt(1e9) && !base.number.abs().eq(1))
    throw new CalculationError('An exponent is too large', 'Keep exponents below 10^9.')
  const exact =
    base.exact && (base.number.isZero() || powerDigits(base.number, size.toNumber()) < exactDigits)
  const power = inRange((exact ? Exact : Rough).pow(base.number, size), exact)
  return exponent.isNegative() ? divide(toDecimal(1), power) : power
}

/** a to the power of b. Throws CalculationError where the result is not a real number. */
export const power = (base: DecimalValue, exponent: DecimalValue): DecimalValue => {
  const by = roundToSettled(exponent)
  if (isZero(base) && by.isNegative() && !by.isZero())
    throw new CalculationError('Division by zero: 0 has no negative power', 'Check the base.')
  if (by.isInteger()) return wholePower(base, by)
  if (base.number.isNegative() && !base.number.isZero())
    throw new CalculationError(
      'A negative number has no power that is not whole',
      'Use a whole exponent, or abs(x) ^ y.',
    )
  return inRange(Root.pow(base.number, by), false)
}

const squareRoot = (value: DecimalValue): DecimalValue => {
  if (value.number.isNegative() && !isZero(value))
    throw new CalculationError('The square root of a negative number', 'Use abs(x) first.')
  const root = Root.sqrt(value.number.abs())
  return { number: root, exact: value.exact && Exact.mul(root, root).eq(value.number) }
}

/** `places` decimals, halves away from zero; a negative number of places rounds to tens, hundreds and so on. */
const round = (value: DecimalValue, places: DecimalValue): DecimalValue => {
  const count = roundToSettled(places)
  if (!count.isInteger() || count.abs().gt(300))
    throw new CalculationError(
      'round needs a whole number of places from -300 to 300',
      'Write for example round(x, 2).',
    )
  const shift = new Exact(10).pow(count)
  return { number: Exact.mul(roundToSettled(value), shift).toDecimalPlaces(0).div(shift), exact: value.exact }
}

type Numbers = readonly [DecimalValue, ...DecimalValue[]]
/** A function of expressions: how many numbers it takes, at least one, and what it makes of them. */
type ExpressionFunction = { most: number; takes: string; compute(values: Numbers): DecimalValue }

const sum = (values: readonly DecimalValue[]): DecimalValue => values.reduce(add, toDecimal(0))
const average = (values: readonly DecimalValue[]): DecimalValue =>
  divide(sum(values), toDecimal(values.length))
const median = (values: Numbers): DecimalValue =>
  average(values.toSorted(compare).slice((values.length - 1) >> 1, (values.length >> 1) + 1))

const many = (compute: (values: Numbers) => DecimalValue): ExpressionFunction => ({
  most: Infinity,
  takes: 'at least 1 number',
  compute,
})
const one = (compute: (value: DecimalValue) => DecimalValue): ExpressionFunction => ({
  most: 1,
  takes: '1 number',
  compute: ([value]) => compute(value),
})
const toSettledInteger = (value: DecimalValue, rounding: Decimal.Rounding): DecimalValue => ({
  number: roundToSettled(value).toDecimalPlaces(0, rounding),
  exact: value.exact,
})

/** The functions of expressions by name. */
export const functions: ReadonlyMap<string, ExpressionFunction> = new Map([
  ['sum', many(sum)],
  ['avg', many(average)],
  ['min', many((values) => values.reduce((best, value) => (compare(value, best) < 0 ? value : best)))],
  ['max', many((values) => values.reduce((best, value) => (compare(value, best) > 0 ? value : best)))],
  ['median', many(median)],
  ['count', many((values) => toDecimal(values.length))],
  [
    'round',
    { most: 2, takes: '1 or 2 numbers', compute: ([value, places = toDecimal(0)]) => round(value, places) },
  ],
  ['abs', one(({ number, exact }) => ({ number: number.abs(), exact }))],
  ['sqrt', one(squareRoot)],
  ['floor', one((value) => toSettledInteger(value, Decimal.ROUND_FLOOR))],
  ['ceil', one((value) => toSettledInteger(value, Decimal.ROUND_CEIL))],
])

/** Plain digits; with an exponent only where zeros would hide the number. Rounded to 34 digits when not exact. */
export const formatDecimal = ({ number, exact }: DecimalValue): string => {
  const shown = exact ? number : number.toSignificantDigits(displayDigits)
  if (shown.isZero()) return '0'
  const plain = shown.e >= -40 && shown.e < (exact ? exactDigits : 40)
  return plain ? shown.toFixed() : shown.toExponential()
}
