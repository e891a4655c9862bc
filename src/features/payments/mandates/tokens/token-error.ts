import type { Violation } from '../violations.ts'

/** A token that cannot be used. `violation` names the part of the token and what to do. */
export class TokenError extends Error {
  readonly violation: Violation

  constructor(code: string, field: string, message: string) {
    super(`${field} ${message}`)
    this.name = 'TokenError'
    this.violation = { code, error: 'invalid_credential', field, message: this.message }
  }
}

/** Notes why a part of a token is refused; the message follows the name of the part. */
export type Refuse = (code: string, part: string, message: string) => void

/** A `Refuse` that adds to a list; names of parts begin with `field`. */
export const toRefuse =
  (violations: Violation[], field: string): Refuse =>
  (code, part, message) => {
    violations.push(new TokenError(code, `${field}.${part}`, message).violation)
  }

/** Runs a step of a verification: a `TokenError` becomes a violation, and the step has no result. */
export const attempt = <Value>(violations: Violation[], step: () => Value): Value | undefined => {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof TokenError)) throw error
    violations.push(error.violation)
    return undefined
  }
}
