import type { ConsentRequest } from '../../src/payments/consent/content.ts'
import { authorizeCart } from '../../src/payments/mandates/tokens/authorizations.ts'
import { unique } from './backend.ts'
import { mandateTime, parties } from './mandate-parties.ts'
import { site } from './passkeys.ts'

/** A cart of AP2 0.1 and its payment. */
export const newCart = async (name = 'Demo Merchant'): Promise<ConsentRequest> => {
  const id = unique('order')
  const total = { label: 'Shoes', amount: { currency: 'USD', value: 199 }, refund_period: 14 }
  const contents = {
    id: `cart of ${id}`,
    user_cart_confirmation_required: true,
    payment_request: {
      method_data: [{ supported_methods: 'CARD' }],
      details: { id, display_items: [total], total },
    },
    cart_expiry: new Date((mandateTime + 3600) * 1000).toISOString(),
    merchant_name: name,
  }
  const claims = {
    issuer: 'https://shop.example',
    subject: 'shop',
    audience: site.origin,
    iat: mandateTime - 60,
    jti: id,
  }
  const cart = {
    contents,
    merchant_authorization: await authorizeCart(contents, claims, parties.merchant.signing),
  }
  const payment = {
    payment_mandate_id: unique('pm'),
    payment_details_id: id,
    payment_details_total: total,
    payment_response: { request_id: id, method_name: 'CARD', payer_email: 'ann@example.com' },
    merchant_agent: name,
  }
  return { version: '0.1', cart: JSON.stringify(cart), payment: JSON.stringify(payment) }
}
