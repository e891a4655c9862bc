import type { MeteredUsage } from './ports.ts'

/** Thrown by readers: the first place (a JSON pointer into the raw answer, or the name of a path) that differs. */
export class Unreadable extends Error {
  readonly place: string
  /** What the vendor counted all the same, where that could be read. */
  usage: MeteredUsage | null = null
  constructor(place: string, message: string) {
    super(message)
    this.name = 'Unreadable'
    this.place = place
  }
}

/** An error that the vendor sent inside a good answer: `error` is what it said, a text or an object. */
export class AnsweredError extends Unreadable {
  readonly error: unknown
  constructor(place: string, message: string, error: unknown) {
    super(place, message)
    this.name = 'AnsweredError'
    this.error = error
  }
}
