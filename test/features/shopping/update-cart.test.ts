import { expect, test } from 'vitest'
import { findOfferChange } from '../../../src/features/shopping/update-cart.tool.ts'

const price = { currency: 'USD', minor: 59_999, text: '$599.99' }
const offer = {
  ...{ version: '0.1' as const, cart_id: 'cart_3', label: 'Machine', total: price, expires_at: null },
  ...{ merchant: null, refund_days: 30, signed: null },
  lines: [
    { label: 'Machine', price, refund_days: 30 },
    { label: 'Shipping', price, refund_days: 0 },
  ],
}

test('a shorter return period of one line is a change, though another line had none before', () => {
  const lines = offer.lines.map((line) => ({ ...line, refund_days: 0 }))
  expect(findOfferChange(offer, { ...offer, lines })).toBe('takes it back for 0 days in place of 30')
  expect(findOfferChange(offer, offer)).toBeNull()
})

test('another total is a change, unless the lines that were added account for it', () => {
  const total = { ...price, minor: 60_000, text: '$600.00' }
  const tax = { label: 'Tax', price: { ...price, minor: 1, text: '$0.01' }, refund_days: 30 }
  expect(findOfferChange(offer, { ...offer, total })).toBe('asks $600.00, where the offer was $599.99')
  expect(findOfferChange(offer, { ...offer, total, lines: [...offer.lines, tax] })).toBeNull()
})
