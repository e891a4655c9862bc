// tier: all
import { expect, test } from 'vitest'
import { type Books, judgePurchases } from '../../chaos/purchases/verdict.ts'

const row = (mandate: string, status: string | null = 'succeeded') => ({
  ...{ payment_id: `pay_${mandate}`, status, amount: 100, mandate },
})
const booksOf = (...mandates: string[]): Books => ({
  payments: mandates.map((mandate) => ({ mandate, state: 'paid', amount: 100 })),
  orders: mandates.map((mandate) => ({ mandate, state: 'paid', amount: 100 })),
  receipts: mandates.map((mandate) => ({ mandate, status: 'Success' })),
  tokens: mandates.map((mandate) => ({ mandate, usedBy: 'm' })),
})

test('the verdict on purchases accepts equal books, and sees what is doubled, lost, invented or of another sum', () => {
  expect(judgePurchases([row('a'), row('b'), row('c', 'declined')], booksOf('a', 'b'), 2)).toEqual({
    figures: { doubled: 0, lost: 0, paid: 2, sum: 200 },
    failures: [],
  })
  const failuresOf = (...args: Parameters<typeof judgePurchases>) =>
    judgePurchases(...args).failures.join('; ')
  expect(failuresOf([row('a')], booksOf('a', 'x'), 1)).toMatch('charged x, which Mason has as undefined')
  expect(failuresOf([row('a'), row('b')], booksOf('a'), 2)).toMatch('pay_b: processor 0 times')
  expect(failuresOf([row('a')], booksOf('a', 'a'), 1)).toMatch('pay_a: used token 2 times')
  expect(failuresOf([row('a', 'declined')], booksOf('a'), 0)).toMatch(
    'charged a, which Mason has as declined',
  )
  expect(failuresOf([row('a')], { ...booksOf('a'), receipts: [] }, 1)).toMatch(
    'receipt of the wallet 0 times',
  )
  expect(failuresOf([row('a')], booksOf('a'), 0)).toMatch('users read 0 times that it was bought, of 1')
  for (const status of [null, 'sent', 'unknown'])
    expect(failuresOf([row('a', status)], booksOf(), 0)).toMatch('pay_a was lost')
})
