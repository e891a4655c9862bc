/** A question to a person; its answer must match `schema` (JSON Schema). */
export type Question = {
  question: string
  schema: Record<string, unknown>
  options: string[]
  expires_in_ms: number
}

/** What became of a question. */
export type PersonAnswer = { kind: 'answered'; answer: unknown } | { kind: 'expired' }
