import { describe, expect, test } from 'vitest'
import { findPurchaseCart } from '../../../../src/features/payments/tools/purchase.ts'
import { MasonError } from '../../../../src/state/errors.ts'
import { answer, plan, stateOf } from '../../../support/actions.ts'

const cart = (id: string) => ({ contents: { id }, merchant_authorization: 'a.b.c' })
const blobs = { read: async () => null }
const state = stateOf([
  plan([{ tool: 'gate_offer' }]),
  answer('gate_offer', 0, { text: JSON.stringify(cart('offered')) }),
  plan([{ tool: 'gate_offer', args: { cart: cart('written by the model') } }]),
])

describe('findPurchaseCart', () => {
  test('takes the latest offer in a result, and none that a model wrote into a call', async () => {
    const latest = await findPurchaseCart(state, { cart_action: null, cart_id: null }, blobs)
    expect(latest).toMatchObject({ cart: { id: 'offered' }, cart_action: 2 })
    const named = findPurchaseCart(state, { cart_action: 3, cart_id: null }, blobs)
    await expect(named).rejects.toThrow('the result of action 3 has no signed cart')
  })

  test('passes over a later cart of the same id that is refused, and says why where no other is there', async () => {
    const forged = stateOf([
      plan([{ tool: 'gate_offer' }]),
      answer('gate_offer', 0, { text: JSON.stringify(cart('offered')) }),
      plan([{ tool: 'gate_offer' }]),
      answer('gate_offer', 0, { text: JSON.stringify({ ...cart('offered'), note: 'forged' }) }),
    ])
    const refuse = new MasonError('invalid_request', 'no trusted merchant signed it')
    const check = async ({ text }: { text: string }) => {
      if (text.includes('forged')) throw refuse
    }
    const asked = { cart_action: null, cart_id: 'offered' }
    expect(await findPurchaseCart(forged, asked, blobs, check)).toMatchObject({ cart_action: 2 })
    const all = findPurchaseCart(forged, asked, blobs, () => Promise.reject(refuse))
    await expect(all).rejects.toBe(refuse)
  })
})
