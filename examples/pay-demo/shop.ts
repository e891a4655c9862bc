import type { SigningKey } from '../../src/features/payments/mandates/tokens/keys.ts'
import { authorizeCart } from '../purchase/authorize-cart.ts'
import { type Listening, serveJson, startModel } from '../purchase/model.ts'

/** The other programs of `npm run demo:pay`, on loopback: a merchant that signs carts, and a scripted model. */

/** The merchant: any request gets a cart with one coffee maker, signed for this audience. */
export const startMerchant = (
  name: string,
  issuer: string,
  audience: string,
  key: SigningKey,
): Promise<Listening> =>
  serveJson(async () => {
    const now = Math.floor(Date.now() / 1000)
    const id = `order-${now}`
    const item = { label: 'Coffee maker', amount: { currency: 'USD', value: 89.9 }, refund_period: 30 }
    const contents = {
      id,
      user_cart_confirmation_required: true,
      payment_request: {
        method_data: [{ supported_methods: 'CARD' }],
        details: { id, display_items: [item], total: { ...item, label: 'Total' } },
      },
      cart_expiry: new Date((now + 1800) * 1000).toISOString(),
      merchant_name: name,
    }
    const claims = { issuer, subject: 'shop', audience, iat: now, jti: id, lifetime: 1800 }
    return { contents, merchant_authorization: await authorizeCart(contents, claims, key) }
  })

/** What a model would do: ask the merchant for a cart, pay it, and say what became of it. */
export const startShopper = (shopUrl: string): Promise<Listening> =>
  startModel((talk) => {
    const results = talk.filter(({ role }) => role === 'tool')
    if (results.length === 0) return { name: 'http_request', args: { url: `${shopUrl}/cart` } }
    if (results.length === 1) return { name: 'create_payment_mandate', args: {} }
    const isPaid = /is succeeded/.test(results.at(-1)?.content ?? '')
    return {
      content: isPaid ? 'I bought the coffee maker for 89.90 USD.' : 'I did not buy the coffee maker.',
    }
  })
