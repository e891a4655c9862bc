import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'

/** What the answer to a secret question is for: the call that asks, its user, and the payment that the question names. */
export type SecretAnswerUse = {
  business_id: string
  user_id: string
  run_id: string
  plan_seq: number
  index: number
  payment_id: string
}

/** Encrypts answers to secret questions, so that no process but the one that uses them can read them. A feature provides it. */
export type SecretAnswers = {
  /** Throws `secret_unreadable` where none can be encrypted yet: the question is then not asked. */
  checkReady(sql: Sql): Promise<void>
  /** A compact JWE for this use alone. Throws `secret_unreadable` as `checkReady`. */
  seal(sql: Sql, answer: string, use: SecretAnswerUse): Promise<string>
}

const refuse = async (): Promise<never> => {
  throw new MasonError('secret_unreadable', 'this server has no feature that encrypts secret answers', {
    remedy: 'ask a question without `secret`, or add a feature that provides "core.secret-answers"',
  })
}

/** Without such a feature no secret question is asked. */
export const noSecretAnswers: SecretAnswers = { checkReady: refuse, seal: refuse }
