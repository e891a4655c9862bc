import { expect, test } from 'vitest'
import { findMandateProblem } from '../../../../../src/features/payments/mandates/v1/message-mandates.ts'

const intent = { natural_language_description: 'tea', intent_expiry: '2030-01-01T00:00:00Z' }
const toItem = (value: unknown) => ({ label: 'tea', amount: { currency: 'USD', value } })
const toCart = (value: unknown, cart_expiry: unknown, displayInfo = '') => ({
  'ap2.mandates.CartMandate': {
    contents: {
      ...{ id: 'cart', user_cart_confirmation_required: false, cart_expiry, merchant_name: 'shop' },
      payment_request: {
        method_data: [{ supported_methods: 'CARD', data: { displayInfo } }],
        details: { id: 'order', display_items: [toItem(3), toItem(value)], total: toItem(603.49) },
      },
    },
  },
})

test('other data are passed without a look at all of their members', () => {
  const many = new Proxy(
    {},
    {
      ownKeys() {
        throw new Error('all members are read')
      },
    },
  )
  for (const data of [many, 'tea', null, 5, [], [null, 'x', { other: 1 }], { other: null }])
    expect(findMandateProblem(data)).toBeNull()
})

test('a mandate that is null or in a list is refused', () => {
  for (const name of ['IntentMandate', 'CartMandate', 'PaymentMandate']) {
    const key = `ap2.mandates.${name}`
    expect(findMandateProblem({ [key]: null })).toContain(`["${key}"] is invalid`)
    expect(findMandateProblem(['x', { [key]: intent }])).toContain(` has "${key}" in a list`)
  }
  expect(findMandateProblem({ 'ap2.mandates.IntentMandate': intent })).toBeNull()
})

const allowed: [name: string, value: unknown, expiry: string, display?: string][] = [
  ['a discount', -5.5, '2030-01-01T00:00:00Z'],
  ['the sum of doubles', 1.1 + 2.2, '2030-01-01T00:00:00Z'],
  ['a tiny amount', 5e-324, '2030-01-01T00:00:00Z'],
  ['a huge amount', 1e300, '2030-01-01T00:00:00Z'],
  ['a time without an offset', 5, '2030-01-01T00:00:00.123456'],
  ['a time without seconds', 5, '2030-01-01T00:00Z'],
  ['a time without seconds at an offset', 5, '2030-01-01T00:00-05:00'],
  ['a time with an offset of no place on Earth', 5, '2030-01-01T00:00:00+20:00'],
  ['a member of more than 256 KB', 5, '2030-01-01T00:00:00Z', 'x'.repeat(300_000)],
]
test.for(allowed)('on arrival a cart may have %s', ([, ...cart]) => {
  expect(findMandateProblem(toCart(...cart))).toBeNull()
})

test('an amount that is no finite number and a time of another form are named', () => {
  for (const value of [Number.POSITIVE_INFINITY, 'five', true, null])
    expect(findMandateProblem(toCart(value, '2030-01-01T00:00:00'))).toMatch(
      /display_items\[1\].amount.value [^;]*$/,
    )
  for (const expiry of ['soon', '2030-13-01T00:00:00'])
    expect(findMandateProblem(toCart(-5, expiry))).toMatch(/contents.cart_expiry [^;]*$/)
})
