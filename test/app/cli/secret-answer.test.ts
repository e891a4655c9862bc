import { expect, test } from 'vitest'
import { sendAnswer } from '../../../src/app/cli/runs/manage-runs.ts'

test('a secret answer is refused as an argument, which other users of the machine can see', async () => {
  const sent: unknown[] = []
  const input_request = {
    id: 'inp_1',
    question: 'Code?',
    schema: { type: 'string' },
    options: [],
    secret: true,
  }
  const client = {
    get: async <Value>() => ({ input_request }) as Value,
    post: async <Value>(_path: string, json?: unknown) => ({ sent: sent.push(json) }) as Value,
  }
  await expect(sendAnswer('run_1', '123456')(client)).rejects.toMatchObject({
    message: 'the answer to this question is a secret',
    remedy: expect.stringContaining('leave it out of the command'),
  })
  expect(sent).toEqual([])
})
