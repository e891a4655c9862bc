/**
 * A question to a person; its answer must match `schema` (JSON Schema). The answer to one that is `secret` is a text of 1 to 200
 * characters that only the executor of payments can read, for `payment_id` and its user alone: the call gets it encrypted, for
 * `orderAnswer`.
 *
 * @example
 * ```ts
 * import type { Question } from 'mason-runtime'
 *
 * const question: Question = {
 *   question: 'Send it?',
 *   schema: { type: 'boolean' },
 *   options: [],
 *   expires_in_ms: 86_400_000,
 * }
 * ```
 */
export type Question = {
  question: string
  schema: Record<string, unknown>
  options: string[]
  expires_in_ms: number
  secret?: true
  /** Of a secret question: the payment, or open mandate, that the answer is for. */
  payment_id?: string
}

/**
 * What became of a question. Of one that was `secret`, `answer` is a compact JWE, and '' once it was ordered.
 *
 * @example
 * ```ts
 * import type { PersonAnswer } from 'mason-runtime'
 *
 * const isYes = (answer: PersonAnswer): boolean => answer.kind === 'answered' && answer.answer === true
 * ```
 */
export type PersonAnswer = { kind: 'answered'; answer: unknown } | { kind: 'expired' }
