/**
 * A question to a person; its answer must match `schema` (JSON Schema).
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
}

/**
 * What became of a question.
 *
 * @example
 * ```ts
 * import type { PersonAnswer } from 'mason-runtime'
 *
 * const isYes = (answer: PersonAnswer): boolean => answer.kind === 'answered' && answer.answer === true
 * ```
 */
export type PersonAnswer = { kind: 'answered'; answer: unknown } | { kind: 'expired' }
