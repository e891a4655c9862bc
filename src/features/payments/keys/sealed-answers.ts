import type { SecretAnswers } from '../../../engine/runs/secret-answers.ts'
import { readSealingKey, sealForExecutor, toAnswerPurpose, toQuestion } from './sealed-texts.ts'

/** Answers to secret questions, encrypted for the executor of payments. */
export const sealedAnswers: SecretAnswers = {
  async checkReady(sql) {
    await readSealingKey(sql)
  },
  seal: (sql, answer, { run_id, plan_seq, index, ...use }) =>
    sealForExecutor(sql, answer, toAnswerPurpose({ ...use, question: toQuestion(run_id, plan_seq, index) })),
}
