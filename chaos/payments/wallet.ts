import type { MandatePair } from '../../src/features/payments/ledger/orders.ts'
import { hashText } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { appendMandate, conceal, issueMandate } from '../../src/features/payments/mandates/tokens/issue.ts'
import { signJws } from '../../src/features/payments/mandates/tokens/jws.ts'
import { createParty } from '../../test/support/mandate-parties.ts'

const shop = { id: 'shop_1', name: 'Chaos Shop', website: 'https://shop.example' }
const nowS = (): number => Math.floor(Date.now() / 1000)

/** A person, their agent and a shop: signs what payments need. Every `perMandate` payments share one open mandate and its budget. */
export const createWallet = (audience: string, perMandate: number) => {
  const surface = createParty('surface')
  const merchant = createParty('merchant')
  const agent = createParty()
  const times = { iat: nowS() - 60, exp: nowS() + 6 * 3600 }
  const roots = new Map<number, Promise<{ checkout: string; payment: string }>>()

  const issueRoots = async (): Promise<{ checkout: string; payment: string }> => {
    const items = [{ id: 'line_1', acceptable_items: [conceal({ id: 'shoe', title: 'Shoe' })], quantity: 1 }]
    const common = { cnf: { jwk: agent.jwk }, ...times }
    const checkout = await issueMandate(
      {
        ...{ vct: 'mandate.checkout.open.1', ...common },
        constraints: [
          { type: 'checkout.line_items', items },
          { type: 'checkout.allowed_merchants', allowed: [conceal(shop)] },
        ],
      },
      surface.signing,
    )
    const payment = await issueMandate(
      {
        ...{ vct: 'mandate.payment.open.1', ...common },
        constraints: [
          { type: 'payment.amount_range', currency: 'USD', min: 0, max: 100_000 },
          { type: 'payment.allowed_payees', allowed: [conceal(shop)] },
          { type: 'payment.budget', currency: 'USD', max: 1000 * perMandate },
          { type: 'payment.reference', conditional_transaction_id: hashText(checkout) },
        ],
      },
      surface.signing,
    )
    return { checkout, payment }
  }

  return {
    /** Whose signatures Mason must trust, by role. */
    trusted: [
      { issuer: 'https://surface.example', role: 'trusted-surface' as const, jwk: surface.jwk },
      { issuer: 'https://shop.example', role: 'merchant' as const, jwk: merchant.jwk },
    ],
    /** The mandates of the nth payment. */
    async sign(nth: number, amount: number, nonce: string): Promise<MandatePair> {
      const group = Math.floor(nth / perMandate)
      const made = roots.get(group) ?? issueRoots()
      roots.set(group, made)
      const root = await made
      const line = { id: 'li_0', item: { id: 'shoe', title: 'Shoe', price: amount }, quantity: 1 }
      const totals = [{ type: 'total', amount }]
      const order = { id: `order-${nth}`, merchant: shop, currency: 'USD', line_items: [line], totals }
      const jwt = await signJws({ ...order, ...times }, merchant.signing, { typ: 'JWT' })
      const hop = { audience, nonce, iat: nowS() - 5 }
      const checkout = await appendMandate(
        root.checkout,
        {
          ...{ vct: 'mandate.checkout.1', checkout_jwt: conceal(jwt), checkout_hash: hashText(jwt) },
          ...times,
        },
        agent.signing,
        hop,
      )
      const payment = await appendMandate(
        root.payment,
        {
          ...{ vct: 'mandate.payment.1', transaction_id: hashText(jwt), payee: shop },
          payment_amount: { amount, currency: 'USD' },
          payment_instrument: { id: 'card-1', type: 'card', description: 'Card 4242' },
          ...times,
        },
        agent.signing,
        hop,
      )
      return { version: '0.2', payment, checkout }
    },
  }
}
