// tier: all

import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'

/** What `--absent` adds: within the limits no one is asked, beyond them the user approves and types the code. */
const away = [
  /approve +\n {2}Buys from: Generic Merchant \((http:[^,)]+)\)\. Who is paid: \1\n[\s\S]+All payments: At most 1000\.00 USD[\s\S]+Account: bugsbunny@gmail\.com at wallet/,
  /schedule Buy the item[\s\S]+pay_by_open_mandate +The payment has the status succeeded[\s\S]+I bought it: [\s\S]+schedule/,
  /schedule[\s\S]+schedule Buy[\s\S]+does not allow the payment: the user is asked[\s\S]+approve +603\.49 USD[\s\S]+ 123 [\s\S]+I bought it: /,
]

test.each([
  ['--ap2', '0.1'],
  ['--ap2', '0.2', '--absent'],
])('the demo buys over A2A without a terminal, from four processes, by %s %s', async (...args) => {
  const options = { cwd: tmpdir(), script: 'examples/buy-demo.ts' }
  const { code, stdout, stderr } = await runCli(args.filter(Boolean), options)
  expect([code, stderr]).toEqual([0, ''])
  const isAway = args.includes('--absent')
  // once a purchase while the user is there, and once beyond the limits
  expect(stdout.match(/verification code/g)).toHaveLength(isAway ? 2 : 1)
  for (const shown of [
    ...(isAway ? away : []),
    /Please confirm the following details for your purchase\.[\s\S]+Refundable: Yes[\s\S]+Shall I proceed\? Yes/,
    /mason > merchant[\s\S]+merchant > mason +completed/,
    /1\. Item: \*\*Professional-grade espresso machine\*\*/,
    /approve +603\.49 USD to Generic Merchant/,
    /merchant > processor +initiate_payment/,
    /verification code[\s\S]+ 123 +\(no terminal: the demo answers itself\)/,
    /processor > wallet +Here is the payment receipt\./,
    /I bought it: Professional-grade espresso machine for \$603\.49 from Generic Merchant\. The receipt was checked\./,
    /Trail of pay_\w+: succeeded[\s\S]+signature of the merchant over the c/,
  ])
    expect(stdout).toMatch(shown)
})
