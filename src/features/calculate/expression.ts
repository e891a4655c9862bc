import {
  add,
  CalculationError,
  type DecimalValue,
  divide,
  formatDecimal,
  functions,
  modulo,
  multiply,
  negate,
  power,
  subtract,
  toDecimal,
} from './decimal.ts'

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
type Step = (left: DecimalValue, right: DecimalValue) => DecimalValue
const sumSteps: ReadonlyMap<string, Step> = new Map([
  ['+', add],
  ['-', subtract],
])
const productSteps: ReadonlyMap<string, Step> = new Map([
  ['*', multiply],
  ['/', divide],
  ['%', modulo],
])

/** What people and models write in place of the operators. */
const aliases: ReadonlyMap<string, string> = new Map(
  Object.entries({ '**': '^', '×': '*', '÷': '/', '−': '-', '–': '-', '（': '(', '）': ')', '，': ',' }),
)
const tokenPattern =
  /(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[\p{L}_][\p{L}\p{N}_.]*)|\*\*|\S/gu
const operandStart = /^[\p{L}\p{N}_.(]/u

/** A number, a name, or one sign; empty at the end. `at` and `end`: offsets in the expression, from 0. */
type Token = { kind: 'number' | 'name' | 'sign'; text: string; at: number; end: number }

const toTokens = (expression: string): Token[] =>
  [...expression.matchAll(tokenPattern)].map(({ 0: text, index, groups }) => ({
    kind: groups?.number ? 'number' : groups?.name ? 'name' : 'sign',
    text: aliases.get(text) ?? text,
    at: index,
    end: index + text.length,
  }))

/** Reads and works out one expression; one instance, one use. Throws CalculationError. */
class Reader {
  readonly #text: string
  readonly #tokens: readonly Token[]
  #index = 0
  #depth = 0
  #powers = 0
  /** Offset of the step that was worked out last. */
  stepAt = 0

  constructor(text: string) {
    this.#text = text
    this.#tokens = toTokens(text)
  }

  read(): DecimalValue {
    const value = this.#expression()
    return this.#next.text === '' ? value : this.#unexpected()
  }

  get #next(): Token {
    const { length } = this.#text
    return this.#tokens[this.#index] ?? { kind: 'sign', text: '', at: length, end: length }
  }

  /** Goes past the next token. */
  #take(): Token {
    const token = this.#next
    this.#index += 1
    return token
  }

  #work<Values extends unknown[]>(
    at: number,
    step: (...values: Values) => DecimalValue,
    ...values: Values
  ): DecimalValue {
    this.stepAt = at
    return step(...values)
  }

  #deeper(inner: () => DecimalValue): DecimalValue {
    this.#depth += 1
    if (this.#depth > maxDepth)
      this.#fail(`Nested deeper than ${maxDepth} levels`, 'Work out the inner parts in calls of their own.')
    const value = inner()
    this.#depth -= 1
    return value
  }

  /** Steps of the same rank, from left to right. */
  #chain(steps: ReadonlyMap<string, Step>, operand: () => DecimalValue): DecimalValue {
    let value = operand()
    for (let step = steps.get(this.#next.text); step; step = steps.get(this.#next.text)) {
      const { at } = this.#take()
      value = this.#work(at, step, value, operand())
    }
    return value
  }

  #expression(): DecimalValue {
    return this.#chain(sumSteps, () => this.#chain(productSteps, () => this.#signed()))
  }

  #signed(): DecimalValue {
    let negative = false
    while (sumSteps.has(this.#next.text)) if (this.#take().text === '-') negative = !negative
    const value = this.#power()
    return negative ? negate(value) : value
  }

  #power(): DecimalValue {
    const base = this.#postfix()
    if (this.#next.text !== '^') return base
    this.#countSlow()
    const { at } = this.#take()
    const exponent = this.#deeper(() => this.#signed())
    return this.#work(at, power, base, exponent)
  }

  /** Powers and roots are the slow steps; their number is what bounds the time of one call. */
  #countSlow(): void {
    this.#powers += 1
    if (this.#powers > maxPowers)
      this.#fail(`More than ${maxPowers} powers and roots`, 'Split the expression.')
  }

  #postfix(): DecimalValue {
    let value = this.#primary()
    while (this.#isPercent()) value = this.#work(this.#take().at, divide, value, toDecimal(100))
    return value
  }

  /** Whether a percent sign is next, with no space before it and no operand behind it. */
  #isPercent(): boolean {
    const [before, sign, after] = this.#tokens.slice(this.#index - 1, this.#index + 2)
    return sign?.text === '%' && sign.at === before?.end && !operandStart.test(after?.text.charAt(0) ?? '')
  }

  #primary(): DecimalValue {
    if (this.#next.text === '(') return this.#group(() => this.#deeper(() => this.#expression()))
    if (this.#next.kind === 'sign') return this.#unexpected()
    const token = this.#take()
    return token.kind === 'number' ? this.#number(token) : this.#call(token)
  }

  #number({ text, at, end }: Token): DecimalValue {
    if (text.length > maxDigits)
      this.#fail(`A number of more than ${maxDigits} digits`, 'Round it first.', at)
    // 1,234 or 1_234 or 1'234
    if (this.#depth === 0 && /^([_'’]\d|,\d{3}(?!\d))/.test(this.#text.slice(end, end + 5)))
      this.#fail('A number with thousands separators', 'Write 1234567.89 in place of 1,234,567.89.', at)
    return this.#work(at, toDecimal, text)
  }

  /** The expression between parentheses. */
  #group<Content>(inner: () => Content): Content {
    const open = this.#take()
    const content = inner()
    if (this.#next.text === '') this.#fail("A '(' is never closed", "Add the missing ')'.", open.at)
    if (this.#next.text !== ')') this.#unexpected()
    this.#take()
    return content
  }

  #call({ text: name, at }: Token): DecimalValue {
    const called = functions.get(name.toLowerCase())
    if (!called) {
      const known = [...functions.keys()].join(', ')
      return this.#fail(`Unknown name '${name.slice(0, 40)}'`, `Known functions: ${known}.`, at)
    }
    if (this.#next.text !== '(')
      this.#fail(`'${name}' is a function`, `Write ${name}(...) with its numbers.`, at)
    if (name.toLowerCase() === 'sqrt') this.#countSlow()
    const [first, ...others] = this.#group(() => this.#arguments())
    const count = first ? others.length + 1 : 0
    if (!first || count > called.most) {
      const remedy = 'Check the commas; numbers have no thousands separators.'
      return this.#fail(`${name} takes ${called.takes}, not ${count}`, remedy, at)
    }
    return this.#work(at, called.compute, [first, ...others])
  }

  #arguments(): DecimalValue[] {
    const values: DecimalValue[] = []
    if (this.#next.text === ')') return values
    for (;;) {
      values.push(this.#deeper(() => this.#expression()))
      if (this.#next.text !== ',') return values
      this.#take()
    }
  }

  #fail(message: string, remedy: string, at = this.#next.at): never {
    throw new CalculationError(message, remedy, at)
  }

  #unexpected(): never {
    const [char = ''] = this.#next.text
    if (char === '') this.#fail('The expression ends too early', 'Add the missing number.')
    return this.#fail(`Unexpected '${char.toWellFormed()}'`, unexpectedRemedy(char))
  }
}

const unexpectedRemedy = (char: string): string => {
  if (char === ',') return 'Commas stand only between the numbers of a function: write 1234.5.'
  if (char === ')') return "Take it out, or add the missing '(' or number."
  if ('*/%^'.includes(char)) return 'Put a number on both sides of the operator.'
  if (operandStart.test(char)) return 'Put an operator before it, as in 2 * (3 + 4).'
  return 'Use only numbers, + - * / % ^ ( ) and functions; no units or currency signs.'
}

/** The value as decimal text, or what is wrong with the expression and how to fix it. */
type EvaluationResult = { ok: true; value: string } | { ok: false; error: string }

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
  const reader = new Reader(expression)
  try {
    return { ok: true, value: formatDecimal(reader.read()) }
  } catch (error) {
    if (!(error instanceof CalculationError)) throw error
    const at = error.at ?? reader.stepAt
    const where = `at position ${at + 1}, near '${quoteNear(expression, at)}'`
    return { ok: false, error: `${where}: ${error.message}. ${error.remedy}` }
  }
}
