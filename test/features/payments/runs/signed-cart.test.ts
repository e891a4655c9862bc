import { expect, test } from 'vitest'
import { signJws } from '../../../../src/features/payments/mandates/tokens/jws.ts'
import { createPaymentMandate } from '../../../../src/features/payments/runs/signed-cart.ts'
import { checkout, parties } from '../../../support/mandate-parties.ts'

const toMethods = (names: string[]) => names.map((name) => ({ supported_methods: name }))

/** The way to pay that a mandate for a cart or checkout with these methods names. */
const choose = async (version: '0.1' | '0.2', names: string[], method: string | null): Promise<string> => {
  const choice = { payment_id: 'pay_1', method }
  const total = { label: 'Total', amount: { currency: 'USD', value: 199 } }
  const contents = {
    ...{ id: 'cart', user_cart_confirmation_required: true, merchant_name: 'Demo Merchant' },
    payment_request: {
      method_data: toMethods(names),
      details: { id: 'order', display_items: [total], total },
    },
    cart_expiry: '2030-01-01T00:00:00Z',
  }
  const claims = {
    ...{ ...checkout, method_data: toMethods(names) },
    totals: [{ type: 'total', amount: 19_900 }],
  }
  const text =
    version === '0.1'
      ? JSON.stringify({ contents, merchant_authorization: 'signed' })
      : await signJws(claims, parties.merchant.signing, { typ: 'JWT' })
  const { payment } = createPaymentMandate({ version, id: 'cart', text }, choice)
  const made = JSON.parse(payment)
  return version === '0.1' ? made.payment_response.method_name : made.payment_instrument.type
}

test.each([
  ['0.1', ['CARD', 'BANK'], null, 'CARD'],
  ['0.1', ['CARD', 'BANK'], 'BANK', 'BANK'],
  ['0.2', [], null, 'card'],
  ['0.2', ['BANK'], null, 'card'],
  ['0.2', [], 'card', 'card'],
] as const)(
  'a cart of AP2 %s that takes %j is paid for the choice %s by %s',
  async (version, names, method, by) => {
    expect(await choose(version, [...names], method)).toBe(by)
  },
)

test('a method that a cart does not take is refused', async () => {
  await expect(choose('0.1', ['CARD'], 'BANK')).rejects.toThrow('cannot be paid by')
  await expect(choose('0.2', ['BANK'], 'BANK')).rejects.toThrow('cannot be paid by')
})
