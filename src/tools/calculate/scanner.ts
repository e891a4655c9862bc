import { CalculationError } from './decimal.ts'

/** What people and models write in place of the operators. */
const aliases: ReadonlyMap<string, string> = new Map(
  Object.entries({ '×': '*', '÷': '/', '−': '-', '–': '-', '（': '(', '）': ')', '，': ',' }),
)
const operandStart = /[\p{L}\p{N}_.(（]/u

/** Walks over the text of an expression. Knows its signs, not its grammar. */
export class Scanner {
  readonly #text: string
  readonly #number = /(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y
  readonly #name = /[\p{L}_][\p{L}\p{N}_.]*/uy
  /** Offset of the next character, from 0. */
  at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** The sign or first character that comes next, past white space; empty at the end. */
  next(): string {
    while (/\s/.test(this.#text.charAt(this.at))) this.at += 1
    if (this.at >= this.#text.length) return ''
    if (this.#text.startsWith('**', this.at)) return '^'
    const char = String.fromCodePoint(this.#text.codePointAt(this.at) ?? 0)
    return aliases.get(char) ?? char
  }

  /** Goes past the sign that `next` gave. */
  skip(): void {
    this.at += this.#text.startsWith('**', this.at) ? 2 : 1
  }

  number(): string | null {
    return this.#match(this.#number)
  }

  name(): string | null {
    return this.#match(this.#name)
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.#text)?.[0] ?? null
    if (found !== null) this.at += found.length
    return found
  }

  /** Whether a percent sign is right here, with no space before it and no operand behind it. */
  isPercent(): boolean {
    return (
      this.#text[this.at] === '%' &&
      !operandStart.test(
        this.#text
          .slice(this.at + 1)
          .trimStart()
          .charAt(0),
      )
    )
  }

  /** Whether what follows a number groups its digits: 1,234 or 1_234 or 1'234. */
  isThousands(): boolean {
    return /^[_'’]\d|^,\d{3}(?!\d)/.test(this.#text.slice(this.at, this.at + 5))
  }

  fail(message: string, remedy: string, at = this.at): never {
    throw new CalculationError(message, remedy, at)
  }

  unexpected(): never {
    const char = this.next()
    if (char === '') this.fail('The expression ends too early', 'Add the missing number.')
    if (char === ',')
      this.fail("Unexpected ','", 'Commas stand only between the numbers of a function: write 1234.5.')
    if (char === ')') this.fail("Unexpected ')'", "Take it out, or add the missing '(' or number.")
    if ('*/%^'.includes(char))
      this.fail(`Unexpected '${char}'`, 'Put a number on both sides of the operator.')
    if (operandStart.test(char))
      this.fail(`Unexpected '${char}'`, 'Put an operator before it, as in 2 * (3 + 4).')
    return this.fail(
      `Unexpected '${char.toWellFormed()}'`,
      'Use only numbers, + - * / % ^ ( ) and functions; no units or currency signs.',
    )
  }
}
