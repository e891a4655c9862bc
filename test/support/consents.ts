import { expect } from 'vitest'
import { authorizeCart } from '../../examples/purchase/authorize-cart.ts'
import type { ConsentRequest } from '../../src/features/payments/consent/content.ts'
import { hashText } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { signJws } from '../../src/features/payments/mandates/tokens/jws.ts'
import type { SigningKey } from '../../src/features/payments/mandates/tokens/keys.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { unique } from './backend.ts'
import type { TestServer } from './http.ts'
import { closedPayment, type createParty, checkout as offer, parties, shop } from './mandate-parties.ts'
import { asProxy, site } from './passkeys.ts'
import { admitRun } from './runs.ts'

const nowS = (): number => Math.floor(Date.now() / 1000)

/** Adds a key that the business `default` trusts; returns the id of its row. */
export const trustParty = async (
  server: TestServer,
  { jwk }: Pick<ReturnType<typeof createParty>, 'jwk'>,
  role: 'merchant' | 'trusted-surface' | 'payment-processor',
  issuer = shop.website,
): Promise<string> => {
  const { kid, kty, crv, x, y } = jwk
  const json = { issuer, kid, roles: [role], jwk: { kty, crv, x, y } }
  const { status, body } = await asProxy(server, 'POST', '/admin/v1/trust', json)
  expect(status).toBe(201)
  return body.id
}

/** A checkout of AP2 0.2 and its payment. */
export const newCheckout = async (
  changes: { checkout?: object; payment?: object } = {},
  signing: SigningKey = parties.merchant.signing,
): Promise<ConsentRequest> => {
  const claims = { ...offer, id: unique('order'), ...changes.checkout }
  const checkout = await signJws(claims, signing, { typ: 'JWT' })
  const times = { iat: nowS() - 60, exp: nowS() + 3600 }
  const payment = closedPayment({ transaction_id: hashText(checkout), ...times, ...changes.payment })
  return { version: '0.2', checkout, payment: JSON.stringify(payment) }
}

/** A cart of AP2 0.1 and its payment. `iat` in seconds since 1970. */
export const newCart = async (
  name = 'Demo Merchant',
  {
    iat = nowS() - 60,
    signing = parties.merchant.signing,
    id = unique('order'),
    items = [{}],
    expiry = new Date((iat + 3600) * 1000).toISOString(),
  }: { iat?: number; signing?: SigningKey; id?: string; items?: object[]; expiry?: string } = {},
): Promise<ConsentRequest> => {
  const total = { label: 'Shoes', amount: { currency: 'USD', value: 199 }, refund_period: 14 }
  const contents = {
    id: `cart of ${id}`,
    user_cart_confirmation_required: true,
    payment_request: {
      method_data: [{ supported_methods: 'CARD' }],
      details: { id, display_items: items.map((item) => ({ ...total, ...item })), total },
    },
    cart_expiry: expiry,
    merchant_name: name,
  }
  const claims = {
    issuer: shop.website,
    subject: 'shop',
    audience: site.origin,
    iat,
    jti: id,
  }
  const cart = {
    contents,
    merchant_authorization: await authorizeCart(contents, claims, signing),
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

/** A run that waits for a day, and can be asked a consent for. */
export const newWaitingRun = async (database: Database, tenant: string, user_id: string): Promise<string> =>
  (await admitRun(database, tenant, { prompt: 'Buy it.', user_id, delay_ms: 86_400_000 })).run.id
