import { expect, test } from 'vitest'
import { checkInvariants } from '../../src/testing/invariants.ts'
import { body, stateOf } from '../support/actions.ts'

test('the invariants hold of an end that names the payments that go on, and of no other data in it', () => {
  const end = (more: object) => () =>
    checkInvariants(
      stateOf([
        body('load-session', { next: ['end'] }),
        body('end', { result: { status: 'cancelled', reason: 'enough', ...more }, next: [] }),
      ]),
    )
  expect(end({})).not.toThrow()
  expect(end({ payments: ['pay_1'] })).not.toThrow()
  expect(end({ payments: [] })).toThrow('payments')
  expect(end({ payments: [1] })).toThrow('payments')
  expect(end({ receipts: ['pay_1'] })).toThrow()
})
