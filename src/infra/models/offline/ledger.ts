import { plain } from './numbers.ts'
import type { Made } from './read-request.ts'
import { readValue } from './read-results.ts'

/** Figures come from the calculate tool; its own arithmetic is only a stand-in until the result is there. */

export type FunctionName = 'sum' | 'avg' | 'median' | 'min' | 'max' | 'count'
export type Expression = { text: string; local: number }
/** Collects what still has to be calculated while an answer is being put together. */
export type Ledger = {
  /** The value of an expression: calculated, or a stand-in while it is `wanted`. */
  value(expression: Expression): number
  apply(name: FunctionName, terms: readonly Expression[]): { value: number; expression: Expression }
  readonly wanted: readonly string[]
  /** Expressions whose figure is the engine's own, because calculate failed or is not there. */
  readonly unchecked: readonly string[]
}

/** calculate takes 100,000 characters; longer lists go in parts. */
const longest = 90_000

export const term = (value: number): Expression => ({ text: plain(value), local: value })

/** Sums without the dust of binary fractions: 0.1 + 0.2 is 0.3. */
const clean = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(15)) : 0)

/** The engine's own value, for orders and stand-ins. */
export const locally = (name: FunctionName, values: readonly number[]): number => {
  const sum = (): number => values.reduce((a, b) => a + b, 0)
  if (name === 'count') return values.length
  if (values.length === 0) return 0
  if (name === 'sum') return clean(sum())
  if (name === 'avg') return clean(sum() / values.length)
  if (name === 'min') return values.reduce((a, b) => Math.min(a, b))
  if (name === 'max') return values.reduce((a, b) => Math.max(a, b))
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  return clean(((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2)
}

/** `sum(1, 2, 3)`; a sum of one number is that number. */
export const applied = (name: FunctionName, terms: readonly Expression[]): Expression => ({
  text: `${name}(${terms.map((t) => t.text).join(', ')})`,
  local: locally(
    name,
    terms.map((t) => t.local),
  ),
})

export const combined = (text: string, local: number): Expression => ({ text, local: clean(local) })

const partsOf = (terms: readonly Expression[]): Expression[][] => {
  const parts: Expression[][] = [[]]
  let size = 0
  for (const item of terms) {
    if (size + item.text.length + 2 > longest) {
      parts.push([])
      size = 0
    }
    size += item.text.length + 2
    parts.at(-1)?.push(item)
  }
  return parts
}

export const openLedger = (made: readonly Made[], canCalculate: boolean): Ledger => {
  const wanted: string[] = []
  const unchecked: string[] = []
  const value = ({ text, local }: Expression): number => {
    const calls = made.filter((call) => call.name === 'calculate' && call.args.expression === text)
    for (const call of calls) {
      const known = call.failed || call.result === null ? null : readValue(call.result)
      if (known !== null) return known
    }
    const refused = calls.some((call) => call.result !== null) || calls.length > 2
    ;(canCalculate && !refused && text.length <= longest + 1000 ? wanted : unchecked).push(text)
    return local
  }
  const apply: Ledger['apply'] = (name, terms) => {
    const parts = partsOf(terms)
    const whole = applied(name, terms)
    if (parts.length < 2 || name === 'median') return { value: value(whole), expression: whole }
    const inner = name === 'avg' ? 'sum' : name
    const before = wanted.length
    const values = parts.map((part) => term(value(applied(inner, part))))
    const outer = applied(name === 'min' || name === 'max' ? name : 'sum', values)
    const full =
      name === 'avg' ? combined(`${outer.text} / ${terms.length}`, outer.local / terms.length) : outer
    return { value: wanted.length > before ? full.local : value(full), expression: full }
  }
  return { value, apply, wanted, unchecked }
}

/** The engine's own values and no calls: for an order of groups, or as part of a larger expression. */
export const dryLedger: Ledger = {
  value: ({ local }) => local,
  apply: (name, terms) => {
    const expression = applied(name, terms)
    return { value: expression.local, expression }
  },
  wanted: [],
  unchecked: [],
}

/** An expression for people: long lists with their middle left out. */
export const showExpression = (name: FunctionName, terms: readonly Expression[], value: number): string => {
  const texts = terms.map((t) => t.text)
  const shown = texts.length <= 12 ? texts : [...texts.slice(0, 4), '…', texts.at(-1) ?? '']
  const result = plain(value)
  if (terms.length === 1) return texts[0] === result ? '' : `${texts[0] ?? ''} = ${result}`
  if (name === 'sum') return `${shown.map((t) => (t.startsWith('-') ? `(${t})` : t)).join(' + ')} = ${result}`
  return `${name}(${shown.join(', ')}) = ${result}`
}
