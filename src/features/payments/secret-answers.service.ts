import type { SecretAnswers } from '../../engine/runs/secret-answers.ts'
import { secretAnswersRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { readSealingKey, sealForExecutor, toAnswerPurpose, toQuestion } from './keys/sealed-texts.ts'

/** Answers to secret questions, encrypted for the executor of payments. */
const sealedAnswers: SecretAnswers = {
  async checkReady(sql) {
    await readSealingKey(sql)
  },
  seal: (sql, answer, { run_id, plan_seq, index, ...use }) =>
    sealForExecutor(sql, answer, toAnswerPurpose({ ...use, question: toQuestion(run_id, plan_seq, index) })),
}

export default defineService({ provides: secretAnswersRef, needs: {}, start: () => sealedAnswers })
