import type { AgentCard } from '@a2a-js/sdk'
import { expect, test } from 'vitest'
import { ap2Uris } from '../../../src/features/a2a/client/ap2.ts'
import { checkSend } from '../../../src/features/a2a/server/send-checks.ts'

const findMandateProblem = (data: unknown) => (data === 'bad' ? '["mandate"] is invalid' : null)
const message = {
  messageId: 'm',
  role: 'ROLE_USER',
  parts: [{ text: 'Hi' }, { data: 'good' }, { data: 'bad' }],
}
const check = (uri: string, finder: typeof findMandateProblem | null) => () =>
  checkSend(
    {
      card: { capabilities: { extensions: [{ uri }] } } as AgentCard,
      extensions: [],
      findMandateProblem: finder,
    },
    { message },
    '1.0',
  )

test('what is wrong with the mandates of a part is said with its place, to an agent that speaks AP2 alone', () => {
  for (const uri of ap2Uris)
    expect(check(uri, findMandateProblem)).toThrow('message.parts[2].data["mandate"] is invalid')
  expect(check('https://other.example', findMandateProblem)).not.toThrow()
  expect(check(ap2Uris[0] ?? '', null)).not.toThrow()
})
