import {
  absolute,
  add,
  ceil,
  compare,
  divide,
  floor,
  round,
  squareRoot,
  type Value,
  whole,
} from './decimal.ts'

/** A function of expressions: how many numbers it takes, and what it makes of them. */
export type ExpressionFunction = { least: number; most: number; work(values: readonly Value[]): Value }

const sum = (values: readonly Value[]): Value => values.reduce(add, whole(0))
const average = (values: readonly Value[]): Value => divide(sum(values), whole(values.length))
const extreme = (values: readonly Value[], sign: 1 | -1): Value =>
  values.reduce((best, value) => (compare(value, best) * sign > 0 ? value : best))

const median = (values: readonly Value[]): Value => {
  const sorted = values.toSorted(compare)
  const middle = sorted.slice((sorted.length - 1) >> 1, (sorted.length >> 1) + 1)
  return average(middle)
}

const many = (work: (values: readonly Value[]) => Value): ExpressionFunction => ({
  least: 1,
  most: Infinity,
  work,
})
const one = (work: (value: Value) => Value): ExpressionFunction => ({
  least: 1,
  most: 1,
  work: ([value = whole(0)]) => work(value),
})

export const functions: ReadonlyMap<string, ExpressionFunction> = new Map([
  ['sum', many(sum)],
  ['avg', many(average)],
  ['min', many((values) => extreme(values, -1))],
  ['max', many((values) => extreme(values, 1))],
  ['median', many(median)],
  ['count', many((values) => whole(values.length))],
  ['round', { least: 1, most: 2, work: ([value = whole(0), places = whole(0)]) => round(value, places) }],
  ['abs', one(absolute)],
  ['sqrt', one(squareRoot)],
  ['floor', one(floor)],
  ['ceil', one(ceil)],
])

export const functionNames = [...functions.keys()].join(', ')
