import { inspect } from 'node:util'

/** A text that only `reveal()` returns; logs, JSON, errors and string building get `[secret]`. */
export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }
  reveal(): string {
    return this.#text
  }
  toString(): string {
    return '[secret]'
  }
  toJSON(): string {
    return '[secret]'
  }
  /** @internal */
  [inspect.custom](): string {
    return '[secret]'
  }
}
