import {
  absolute,
  add,
  ceil,
  compare,
  type DecimalValue,
  divide,
  floor,
  round,
  squareRoot,
  toDecimal,
} from './decimal.ts'

/** A function of expressions: how many numbers it takes, and what it makes of them. */
export type ExpressionFunction = {
  minNumbers: number
  maxNumbers: number
  compute(values: readonly DecimalValue[]): DecimalValue
}

const sum = (values: readonly DecimalValue[]): DecimalValue => values.reduce(add, toDecimal(0))
const average = (values: readonly DecimalValue[]): DecimalValue =>
  divide(sum(values), toDecimal(values.length))
const extreme = (values: readonly DecimalValue[], sign: 1 | -1): DecimalValue =>
  values.reduce((best, value) => (compare(value, best) * sign > 0 ? value : best))

const median = (values: readonly DecimalValue[]): DecimalValue => {
  const sorted = values.toSorted(compare)
  const middle = sorted.slice((sorted.length - 1) >> 1, (sorted.length >> 1) + 1)
  return average(middle)
}

const many = (compute: (values: readonly DecimalValue[]) => DecimalValue): ExpressionFunction => ({
  minNumbers: 1,
  maxNumbers: Infinity,
  compute,
})
const one = (work: (value: DecimalValue) => DecimalValue): ExpressionFunction => ({
  minNumbers: 1,
  maxNumbers: 1,
  compute: ([value = toDecimal(0)]) => work(value),
})

/** The functions of expressions by name. */
export const functions: ReadonlyMap<string, ExpressionFunction> = new Map([
  ['sum', many(sum)],
  ['avg', many(average)],
  ['min', many((values) => extreme(values, -1))],
  ['max', many((values) => extreme(values, 1))],
  ['median', many(median)],
  ['count', many((values) => toDecimal(values.length))],
  [
    'round',
    {
      minNumbers: 1,
      maxNumbers: 2,
      compute: ([value = toDecimal(0), places = toDecimal(0)]) => round(value, places),
    },
  ],
  ['abs', one(absolute)],
  ['sqrt', one(squareRoot)],
  ['floor', one(floor)],
  ['ceil', one(ceil)],
])

/** Their names, for error messages. */
export const functionNames = [...functions.keys()].join(', ')
