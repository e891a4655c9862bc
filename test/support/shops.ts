import { authorizeCart } from '../../examples/purchase/authorize-cart.ts'
import { ap2Texts as texts } from '../../src/features/ap2-wire.ts'
import { hashText, type JsonObject } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { signJws } from '../../src/features/payments/mandates/tokens/jws.ts'
import type { Answer, Received } from './agent-servers.ts'
import { parties, shop } from './mandate-parties.ts'
import { site } from './passkeys.ts'

/** A merchant and a credentials provider of other makers, which route by the texts of their messages as the samples of AP2 do. */

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()
const usd = (value: number) => ({ currency: 'USD', value })

export const products: [id: string, label: string, price: number, refundDays: number][] = [
  ['cart_1', 'Compact espresso maker', 89.99, 30],
  ['cart_2', 'Automatic espresso and cappuccino machine', 1249, 30],
  ['cart_3', 'Professional-grade espresso machine', 599.99, 60],
]

/** Whether a cart is of a product: its id, or with `_` and more, since a cart is paid once. */
const isCartOf = (cartId: string, product: string): boolean =>
  cartId === product || cartId.startsWith(`${product}_`)

/** The cart of a product; with an address, as a merchant signs it. */
export const toCart = (id: string, { address, more = {} }: { address?: unknown; more?: object } = {}) => {
  const [, label = '', price = 0, refund_period = 0] = products.find(([one]) => isCartOf(id, one)) ?? []
  const item = { label, amount: usd(price), refund_period }
  const added = [
    { label: 'Shipping', amount: usd(2), refund_period: 30 },
    { label: 'Tax', amount: usd(1.5), refund_period: 30 },
  ]
  const total = Math.round((price + (address ? 3.5 : 0)) * 100) / 100
  return {
    id,
    user_cart_confirmation_required: true,
    payment_request: {
      method_data: [{ supported_methods: 'CARD', data: { network: ['mastercard', 'paypal', 'amex'] } }],
      details: {
        ...{ id: id.replace('cart', 'order'), display_items: address ? [item, ...added] : [item] },
        total: { label: 'Total', amount: usd(total), refund_period },
      },
      ...(address ? { shipping_address: address } : {}),
    },
    ...{ cart_expiry: inAnHour(), merchant_name: 'Generic Merchant', ...more },
  }
}

/** The same as the merchant signed it, for this Mason. */
export const signCart = async (contents: JsonObject): Promise<JsonObject> => {
  const claims = { issuer: shop.website, subject: 'shop', audience: site.origin, jti: String(contents.id) }
  const times = { iat: Math.floor(Date.now() / 1000) - 60 }
  const merchant_authorization = await authorizeCart(
    contents,
    { ...claims, ...times },
    parties.merchant.signing,
  )
  return { contents, merchant_authorization }
}

export const completed = (...parts: object[]): Answer => ({
  state: 'completed',
  artifacts: parts.map((part) => [{ data: part }]),
})
export const failed = (text: string): Answer => ({ state: 'failed', says: [{ text }] })

/** A merchant of AP2 0.1 that knows signed carts by their ids. */
export const answerAsMerchant =
  (signed: Map<string, JsonObject>) =>
  ({ text, data }: Received): Answer => {
    if (!data.shopping_agent_id) return failed('Unauthorized Request: Missing shopping_agent_id.')
    if (text === texts.findProducts)
      return completed(
        ...products.map(([product]) => {
          const id = [...signed.keys()].find((one) => isCartOf(one, product)) ?? product
          return { 'ap2.mandates.CartMandate': { contents: toCart(id), merchant_authorization: null } }
        }),
      )
    const cart = signed.get(String(data.cart_id))
    if (text !== texts.updateCart || !cart)
      return failed(`CartMandate not found for cart_id: ${data.cart_id}`)
    return {
      state: 'completed',
      artifacts: [[{ data: { 'ap2.mandates.CartMandate': cart } }, { data: { risk_data: 'risk of shop' } }]],
    }
  }

/** A merchant of AP2 0.2. */
export const answerAsMerchantV2 =
  (jwt: string, total: number) =>
  ({ text, data }: Received): Answer => {
    if (data.catalog_search !== undefined)
      return completed(
        ...products.map(([cart_id, item_label, amount]) => ({
          'ap2.cart': { cart_id, item_label, amount, currency: 'USD' },
        })),
      )
    if (text !== texts.createCheckout) return failed('Missing payment_mandate.')
    const checkout = {
      ...{ cart_id: data.cart_id, checkout_jwt: jwt, checkout_hash: hashText(jwt), currency: 'USD' },
      ...{
        item_label: products.find(([id]) => id === data.cart_id)?.[1],
        amount: total / 100,
        amount_cents: total,
      },
    }
    return completed(
      { 'ap2.checkout': checkout },
      { 'payment_request.PaymentMethodData': { supported_methods: 'CARD', data: { network: ['amex'] } } },
    )
  }

/** The signed checkout of a product, with shipping and tax. */
export const signCheckout = (
  id: string,
  more: object = {},
  signing = parties.merchant.signing,
): Promise<string> => {
  const [, title = '', price = 0] = products.find(([one]) => one === id) ?? []
  const minor = Math.round(price * 100)
  const totals = { subtotal: minor, fulfillment: 200, tax: 150, total: minor + 350 }
  const claims = {
    ...{ iss: shop.website, id: id.replace('cart', 'order'), currency: 'USD', merchant: shop },
    ...{ iat: Math.floor(Date.now() / 1000) - 60, exp: Math.floor(Date.now() / 1000) + 3600 },
    line_items: [{ id: 'line_1', item: { id, title, price: minor }, quantity: 1 }],
    totals: Object.entries(totals).map(([type, amount]) => ({ type, amount })),
    ...more,
  }
  return signJws(claims, signing, { typ: 'JWT' })
}

type Method = { type: string; alias: string; network?: string }
const accounts: Record<string, { address?: object; methods: Method[] }> = {
  'bugsbunny@gmail.com': {
    address: {
      ...{ recipient: 'Bugs Bunny', organization: 'Sample Organization', address_line: ['123 Main St'] },
      ...{ city: 'Sample City', region: 'ST', postal_code: '00000', country: 'US' },
      phone_number: '+1-000-000-0000',
    },
    methods: [
      { type: 'CARD', alias: 'American Express ending in 4444', network: 'amex' },
      { type: 'CARD', alias: 'American Express ending in 8888', network: 'amex' },
      { type: 'BANK_ACCOUNT', alias: 'Primary bank account' },
      { type: 'DIGITAL_WALLET', alias: "Bugs's PayPal account" },
    ],
  },
  'daffyduck@gmail.com': { methods: [{ type: 'BANK_ACCOUNT', alias: 'Main checking account' }] },
  'elmerfudd@gmail.com': { methods: [{ type: 'DIGITAL_WALLET', alias: "Fudd's PayPal" }] },
}
export const aToken = 'fake_payment_credential_token_0'

/** A credentials provider with the accounts of the demo. */
export const answerAsWallet = ({ text, data, all }: Received): Answer => {
  const account = accounts[String(data.user_email)]
  if (!account) return failed('An error occurred: unknown account')
  if (text === texts.getAddress)
    return account.address ? completed({ 'contact_picker.ContactAddress': account.address }) : completed()
  if (text === texts.getMethods) {
    const taken = all('payment_request.PaymentMethodData') as {
      supported_methods: string
      data?: { network?: string[] }
    }[]
    const fits = ({ type, network }: Method) =>
      taken.some(
        ({ supported_methods, data: named }) =>
          supported_methods === type && (!named?.network || named.network.includes(network ?? '')),
      )
    return completed({ payment_method_aliases: account.methods.filter(fits).map(({ alias }) => alias) })
  }
  if (text === texts.getToken && data.payment_method_alias) return completed({ token: aToken })
  return failed('An error occurred: Invalid token')
}
