// tier: all
import { expect, test } from 'vitest'
import { judgePayments } from '../../chaos/payments/verdict.ts'
import type { Payment } from '../../examples/card-provider/books.ts'

const charge = (payment_id: string, captured = 100): Payment => ({
  ...{ id: `ch_${payment_id}`, key: 'k', payment_id, payee: 'Shop', currency: 'USD', amount: 100, captured },
  ...{ refunded: 0, status: 'succeeded', capture: true, tries: 0 },
})
const paid = (payment_id: string) => ({ payment_id, status: 'succeeded', amount_minor: 100 })
const declined = { payment_id: 'no', status: 'declined', amount_minor: 100 }

test('the verdict on payments accepts equal books, and sees what is doubled, lost, invented or of another sum', () => {
  const spend = { reserved: 0, spent: 200 }
  const rows = [paid('a'), paid('b'), declined]
  const books = [charge('a'), charge('b'), charge('no', 0)]
  expect(judgePayments(rows, spend, books)).toEqual({
    figures: { doubled: 0, lost: 0, spent: 200, paid: 200, charged: 200 },
    failures: [],
  })
  const failuresOf = (...args: Parameters<typeof judgePayments>) => judgePayments(...args).failures.join('; ')
  expect(failuresOf(rows, spend, [...books, charge('a')])).toMatch('a was charged 2 times')
  expect(failuresOf(rows, spend, [charge('a'), charge('no', 0)])).toMatch(
    'b is succeeded with 100, and the provider has 0',
  )
  expect(failuresOf(rows, spend, [...books, charge('no')])).toMatch(
    'no is declined with 0, and the provider has 100',
  )
  expect(failuresOf(rows, spend, [...books, charge('x')])).toMatch('x was charged and never ordered')
  for (const status of [null, 'reserved', 'sent', 'unknown'])
    expect(failuresOf([...rows, { payment_id: 'c', status, amount_minor: 1 }], spend, books)).toMatch(
      'c was lost',
    )
  for (const other of [{ spent: 199 }, { reserved: 1 }])
    expect(failuresOf(rows, { ...spend, ...other }, books)).toMatch('mandate_spend has')
})
