import { inspect } from 'node:util'

/** A text that shows itself only to who asks for it by name: not to logs, JSON, errors or string building. */
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
  [inspect.custom](): string {
    return '[secret]'
  }
}
