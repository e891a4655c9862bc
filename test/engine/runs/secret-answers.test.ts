import { expect, test } from 'vitest'
import { noSecretAnswers } from '../../../src/engine/runs/secret-answers.ts'

test('without a feature that encrypts secret answers, none is asked for and none is stored', async () => {
  const refusal = { code: 'secret_unreadable', remedy: expect.stringContaining('core.secret-answers') }
  await expect(noSecretAnswers.checkReady(null as never)).rejects.toMatchObject(refusal)
  await expect(noSecretAnswers.seal(null as never, 'otp', null as never)).rejects.toMatchObject(refusal)
})
