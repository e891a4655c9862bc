// tier: all

import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'

test('the payment demo buys without a terminal: mandate, consent, code, receipt, trail and one charge', async () => {
  const { code, stdout, stderr } = await runCli([], { cwd: tmpdir(), script: 'examples/pay-demo.ts' })
  expect([code, stderr]).toEqual([0, ''])
  for (const shown of [
    /approve +89\.90 USD to Coffee & Co \(https:\/\/coffee\.example\), refund within 30 days/,
    /Approve with your phone\? yes +\(no terminal: the demo answers itself\)/,
    /create_payment_mandate[\s\S]+request_user_authorization[\s\S]+initiate_payment[\s\S]+answer_challenge[\s\S]+check_receipt/,
    /I bought the coffee maker for 89\.90 USD\./,
    /Trail of pay_\w+: succeeded[\s\S]+signature of the merchant over the cart \(key /,
  ])
    expect(stdout).toMatch(shown)
  expect(stdout.match(/Books of the card provider: .*/g)).toEqual([
    'Books of the card provider: succeeded, 8990 of 8990 minor units of USD',
  ])
})
