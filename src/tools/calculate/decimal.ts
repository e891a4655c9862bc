import { Decimal } from 'decimal.js'

/** An invalid expression: what is wrong, the remedy, and where (0-based), once it is known. Never leaves `calculate`. */
export class CalculationError extends Error {
  readonly remedy: string
  readonly at: number | undefined

  constructor(message: string, remedy: string, at?: number) {
    super(message)
    this.name = 'ExpressionFault'
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

/** An error of the numbers, not of the text; the evaluator adds the position. */
const throwExpressionError = (message: string, remedy: string): never => {
  throw new CalculationError(message, remedy)
}

const inRange = (number: Decimal, exact: boolean): DecimalValue => {
  if (!number.isFinite() || (!number.isZero() && number.e > maxExponent))
    return throwExpressionError('A number grows too large', `Keep numbers below 10^${maxExponent}.`)
  if (!number.isZero() && number.e < -maxExponent)
    return throwExpressionError('A number becomes too small', `Keep numbers above 10^-${maxExponent}.`)
  return { number, exact }
}

/** The value as it is meant: without the last digits of a number that is not exact. */
const roundToSettled = ({ number, exact }: DecimalValue): Decimal =>
  exact ? number : number.toSignificantDigits(settledDigits)

/** Reads a decimal literal. Throws CalculationError where it is out of range. */
export const parseDecimal = (text: string): DecimalValue => inRange(new Exact(text), true)
/** A JavaScript number as a decimal. */
export const toDecimal = (number: number): DecimalValue => ({ number: new Exact(number), exact: true })
/** -a */
export const negate = ({ number, exact }: DecimalValue): DecimalValue => ({ number: number.neg(), exact })
/** |a| */
export const absolute = ({ number, exact }: DecimalValue): DecimalValue => ({ number: number.abs(), exact })
const isZero = (value: DecimalValue): boolean => roundToSettled(value).isZero()
/** Negative, zero or positive, as a is less than, equal to or greater than b. */
export const compare = (a: DecimalValue, b: DecimalValue): number => a.number.comparedTo(b.number)

/** Digits from the first of the larger to the last of the smaller number: what their exact sum may need. */
const span = (a: Decimal, b: Decimal): number =>
  Math.max(a.e, b.e) + 1 - Math.min(a.e - a.precision(), b.e - b.precision())

/** What two rough numbers leave when they cancel out is their error, not a number. */
const withoutResidue = (sum: Decimal, a: Decimal, b: Decimal): Decimal =>
  sum.e < Math.max(a.e, b.e) - settledDigits ? new Rough(0) : sum

/** a + b */
export const add = (a: DecimalValue, b: DecimalValue): DecimalValue => {
  if (a.number.isZero()) return b
  if (b.number.isZero()) return a
  if (a.exact && b.exact && span(a.number, b.number) <= exactDigits)
    return inRange(Exact.add(a.number, b.number), true)
  return inRange(withoutResidue(Rough.add(a.number, b.number), a.number, b.number), false)
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
  if (isZero(b)) throwExpressionError('Division by zero', 'Check the divisor.')
  if (a.exact && b.exact) {
    const quotient = Exact.div(a.number, b.number)
    const checkable = quotient.precision() + b.number.precision() <= exactDigits
    if (checkable && Exact.mul(quotient, b.number).eq(a.number)) return inRange(quotient, true)
  }
  return inRange(Rough.div(a.number, b.number), false)
}

/** The remainder with the sign of the divisor, as in Python and spreadsheets: -7 % 3 = 2. */
export const modulo = (a: DecimalValue, b: DecimalValue): DecimalValue => {
  if (isZero(b)) throwExpressionError('Remainder of a division by zero', 'Check the divisor.')
  const [dividend, divisor] = [roundToSettled(a), roundToSettled(b)]
  if (!dividend.isZero() && span(dividend, divisor) > exactDigits)
    throwExpressionError(
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
    return throwExpressionError('An exponent is too large', 'Keep exponents below 10^9.')
  const exact =
    base.exact && (base.number.isZero() || powerDigits(base.number, size.toNumber()) < exactDigits)
  const power = inRange((exact ? Exact : Rough).pow(base.number, size), exact)
  return exponent.isNegative() ? divide(toDecimal(1), power) : power
}

/** a to the power of b. Throws CalculationError where the result is not a real number. */
export const power = (base: DecimalValue, exponent: DecimalValue): DecimalValue => {
  const by = roundToSettled(exponent)
  if (isZero(base) && by.isNegative() && !by.isZero())
    throwExpressionError('Division by zero: 0 has no negative power', 'Check the base.')
  if (by.isInteger()) return wholePower(base, by)
  if (base.number.isNegative() && !base.number.isZero())
    throwExpressionError(
      'A negative number has no power that is not whole',
      'Use a whole exponent, or abs(x) ^ y.',
    )
  return inRange(Root.pow(base.number, by), false)
}

/** The square root. Throws CalculationError for a negative number. */
export const squareRoot = (value: DecimalValue): DecimalValue => {
  if (value.number.isNegative() && !isZero(value))
    throwExpressionError('The square root of a negative number', 'Use abs(x) first.')
  const root = Root.sqrt(value.number.abs())
  return { number: root, exact: value.exact && Exact.mul(root, root).eq(value.number) }
}

/** `places` decimals, halves away from zero; a negative number of places rounds to tens, hundreds and so on. */
export const round = (value: DecimalValue, places: DecimalValue): DecimalValue => {
  const count = roundToSettled(places)
  if (!count.isInteger() || count.abs().gt(300))
    throwExpressionError(
      'round needs a whole number of places from -300 to 300',
      'Write for example round(x, 2).',
    )
  const shift = new Exact(10).pow(count.abs())
  const number = roundToSettled(value)
  if (!count.isNegative())
    return { number: new Exact(number).toDecimalPlaces(count.toNumber()), exact: value.exact }
  return { number: new Exact(number).div(shift).toDecimalPlaces(0).mul(shift), exact: value.exact }
}

/** The largest integer that is not above a. */
export const floor = (value: DecimalValue): DecimalValue => ({
  number: roundToSettled(value).floor(),
  exact: value.exact,
})
/** The smallest integer that is not below a. */
export const ceil = (value: DecimalValue): DecimalValue => ({
  number: roundToSettled(value).ceil(),
  exact: value.exact,
})

/** Plain digits; with an exponent only where zeros would hide the number. Rounded to 34 digits when not exact. */
export const formatDecimal = ({ number, exact }: DecimalValue): string => {
  const shown = exact ? number : number.toSignificantDigits(displayDigits)
  if (shown.isZero()) return '0'
  const plain = shown.e >= -40 && shown.e < (exact ? exactDigits : 40)
  return plain ? shown.toFixed() : shown.toExponential()
}
