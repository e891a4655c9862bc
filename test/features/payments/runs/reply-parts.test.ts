import { expect, test } from 'vitest'
import { ap2Keys } from '../../../../src/features/ap2-wire.ts'
import { signJws } from '../../../../src/features/payments/mandates/tokens/jws.ts'
import { readReplyParts } from '../../../../src/features/payments/runs/reply-parts.ts'
import type { Json } from '../../../../src/state/runtime-state.ts'
import { parties } from '../../../support/mandate-parties.ts'

/** A checkout that a merchant signed, with these members changed, in a part as merchants send it. */
const readCheckout = async (changes: { [key: string]: Json }) => {
  const claims = {
    id: 'chk_1',
    merchant: { id: 'shop', name: 'Shop' },
    currency: 'USD',
    line_items: [{ item: { id: 'tea', title: 'Tea', price: 100 }, quantity: 2 }],
    totals: [{ type: 'total', amount: 200 }],
    ...changes,
  }
  const checkout_jwt = await signJws(claims, parties.merchant.signing)
  const entry = { cart_id: 'cart_1', item_label: 'Tea', currency: 'USD', amount_cents: 200, checkout_jwt }
  return readReplyParts([{ [ap2Keys.checkout]: entry }])
}

test('a checkout whose loose members are of any kind is an offer or a problem, never an error', async () => {
  const odd: Json[] = [null, 1e308, -9007199254740991, '', [], {}, { toString: 1, valueOf: 1 }]
  expect((await readCheckout({})).offers).toMatchObject([{ lines: [{ label: '2 × Tea' }] }])
  for (const value of odd) {
    const item = { id: 'tea', title: value, price: value }
    const line_items = [{ item, quantity: 2, total: value }]
    const totals = [
      { type: 'total', amount: 200 },
      { type: value, amount: value },
    ]
    for (const changes of [{ line_items }, { exp: value }, { totals }, { expires_at: value, links: value }])
      expect(JSON.stringify(await readCheckout(changes))).toContain('"problems"')
  }
})

test('the ways to pay of a signed cart are data as its merchant wrote them, decimals too', () => {
  const total = { label: 'Tea', amount: { currency: 'USD', value: 2.5 } }
  const data = { fee: 1.25, networks: ['visa'], rates: { low: 0.1 } }
  const contents = {
    id: 'cart_1',
    user_cart_confirmation_required: true,
    payment_request: {
      method_data: [{ supported_methods: 'CARD', data }],
      details: { id: 'order_1', display_items: [total], total },
    },
    cart_expiry: '2030-01-01T00:00:00Z',
    merchant_name: 'Shop',
  }
  const { methods } = readReplyParts([
    { [ap2Keys.cartMandate]: { contents, merchant_authorization: 'a.b.c' } },
  ])
  expect(methods).toStrictEqual([{ supported_methods: 'CARD', data }])
})
