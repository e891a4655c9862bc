import {
  add,
  CalculationError,
  type DecimalValue,
  divide,
  formatDecimal,
  modulo,
  multiply,
  negate,
  parseDecimal,
  power,
  subtract,
  toDecimal,
} from './decimal.ts'
import { functionNames, functions } from './functions.ts'
import { Scanner } from './scanner.ts'

/**
 * expression = term {(+ | -) term};  term = signed {(* | / | %) signed};  signed = {+ | -} power
 * power = postfix [^ signed];  postfix = primary {%};  primary = number | name(expression {, expression}) | (expression)
 *
 * `%` is percent when it is right behind its number and no operand follows (12.5%), otherwise the remainder.
 * Worked out while it is read; no code is ever made of it.
 */

const maxDepth = 200
const maxPowers = 1000
const maxDigits = 300
const steps: ReadonlyMap<string, (left: DecimalValue, right: DecimalValue) => DecimalValue> = new Map([
  ['+', add],
  ['-', subtract],
  ['*', multiply],
  ['/', divide],
  ['%', modulo],
])

/** Reads and works out one expression; one instance, one use. Throws ExpressionFault. */
class Reader {
  readonly #scan: Scanner
  #depth = 0
  #powers = 0

  constructor(text: string) {
    this.#scan = new Scanner(text)
  }

  read(): DecimalValue {
    const value = this.#expression()
    return this.#scan.next() === '' ? value : this.#scan.unexpected()
  }

  /** Works out one step; an error of its numbers gets the position of the step. */
  #work(at: number, step: () => DecimalValue): DecimalValue {
    try {
      return step()
    } catch (error) {
      if (error instanceof CalculationError && error.at === undefined)
        this.#scan.fail(error.message, error.remedy, at)
      throw error
    }
  }

  #deeper(inner: () => DecimalValue): DecimalValue {
    this.#depth += 1
    if (this.#depth > maxDepth)
      this.#scan.fail(
        `Nested deeper than ${maxDepth} levels`,
        'Work out the inner parts in calls of their own.',
      )
    const value = inner()
    this.#depth -= 1
    return value
  }

  /** Steps of the same rank, from left to right. */
  #chain(operators: string, operand: () => DecimalValue): DecimalValue {
    let value = operand()
    for (let sign = this.#scan.next(); sign !== '' && operators.includes(sign); sign = this.#scan.next()) {
      const [at, left, step] = [this.#scan.at, value, steps.get(sign) ?? add]
      this.#scan.skip()
      const right = operand()
      value = this.#work(at, () => step(left, right))
    }
    return value
  }

  #expression(): DecimalValue {
    return this.#chain('+-', () => this.#term())
  }

  #term(): DecimalValue {
    return this.#chain('*/%', () => this.#signed())
  }

  #signed(): DecimalValue {
    let negative = false
    for (let sign = this.#scan.next(); sign === '-' || sign === '+'; sign = this.#scan.next()) {
      if (sign === '-') negative = !negative
      this.#scan.skip()
    }
    const value = this.#power()
    return negative ? negate(value) : value
  }

  #power(): DecimalValue {
    const base = this.#postfix()
    if (this.#scan.next() !== '^') return base
    const at = this.#scan.at
    this.#countSlow()
    this.#scan.skip()
    const exponent = this.#deeper(() => this.#signed())
    return this.#work(at, () => power(base, exponent))
  }

  /** Powers and roots are the slow steps; their number is what bounds the time of one call. */
  #countSlow(): void {
    this.#powers += 1
    if (this.#powers > maxPowers)
      this.#scan.fail(`More than ${maxPowers} powers and roots`, 'Split the expression.')
  }

  #postfix(): DecimalValue {
    let value = this.#primary()
    while (this.#scan.isPercent()) {
      const [at, part] = [this.#scan.at, value]
      this.#scan.skip()
      value = this.#work(at, () => divide(part, toDecimal(100)))
    }
    return value
  }

  #primary(): DecimalValue {
    if (this.#scan.next() === '(') return this.#parenthesis()
    const at = this.#scan.at
    const number = this.#scan.number()
    if (number !== null) return this.#number(number, at)
    const name = this.#scan.name()
    return name === null ? this.#scan.unexpected() : this.#call(name, at)
  }

  #number(text: string, at: number): DecimalValue {
    if (text.length > maxDigits)
      this.#scan.fail(`A number of more than ${maxDigits} digits`, 'Round it first.', at)
    if (this.#scan.isThousands() && this.#depth === 0)
      this.#scan.fail('A number with thousands separators', 'Write 1234567.89 in place of 1,234,567.89.', at)
    return this.#work(at, () => parseDecimal(text))
  }

  #parenthesis(): DecimalValue {
    const open = this.#scan.at
    this.#scan.skip()
    const value = this.#deeper(() => this.#expression())
    if (this.#scan.next() === '') this.#scan.fail("A '(' is never closed", "Add the missing ')'.", open)
    if (this.#scan.next() !== ')') this.#scan.unexpected()
    this.#scan.skip()
    return value
  }

  #call(name: string, at: number): DecimalValue {
    const called = functions.get(name.toLowerCase())
    if (!called)
      this.#scan.fail(`Unknown name '${name.slice(0, 40)}'`, `Known functions: ${functionNames}.`, at)
    if (this.#scan.next() !== '(')
      this.#scan.fail(`'${name}' is a function`, `Write ${name}(...) with its numbers.`, at)
    if (name.toLowerCase() === 'sqrt') this.#countSlow()
    const values = this.#arguments()
    if (values.length < called.minNumbers || values.length > called.maxNumbers) {
      const wanted =
        called.maxNumbers === Infinity
          ? 'at least 1 number'
          : called.maxNumbers === 1
            ? '1 number'
            : '1 or 2 numbers'
      const remedy = 'Check the commas; numbers have no thousands separators.'
      this.#scan.fail(`${name} takes ${wanted}, not ${values.length}`, remedy, at)
    }
    return this.#work(at, () => called.compute(values))
  }

  #arguments(): DecimalValue[] {
    const open = this.#scan.at
    const values: DecimalValue[] = []
    this.#scan.skip()
    if (this.#scan.next() !== ')') values.push(this.#deeper(() => this.#expression()))
    while (this.#scan.next() === ',' || this.#scan.next() === '，') {
      this.#scan.skip()
      values.push(this.#deeper(() => this.#expression()))
    }
    if (this.#scan.next() === '') this.#scan.fail("A '(' is never closed", "Add the missing ')'.", open)
    if (this.#scan.next() !== ')') this.#scan.unexpected()
    this.#scan.skip()
    return values
  }
}

/** The value as decimal text, or what is wrong with the expression and how to fix it. */
export type EvaluationResult = { ok: true; value: string } | { ok: false; error: string }

/** The expression around a position, for the person or model that mends it. */
const quoteNear = (text: string, at: number): string => {
  const part = text
    .slice(Math.max(0, at - 12), at + 12)
    .replace(/\s+/g, ' ')
    .toWellFormed()
  return `${at > 12 ? '…' : ''}${part}${at + 12 < text.length ? '…' : ''}`
}

/** The exact value of an arithmetic expression as plain digits, or what is wrong, where (from 1) and what to do. */
export const evaluateExpression = (expression: string): EvaluationResult => {
  try {
    return { ok: true, value: formatDecimal(new Reader(expression).read()) }
  } catch (error) {
    if (!(error instanceof CalculationError)) throw error
    const at = error.at ?? 0
    const where = `at position ${at + 1}, near '${quoteNear(expression, at)}'`
    return { ok: false, error: `${where}: ${error.message}. ${error.remedy}` }
  }
}
