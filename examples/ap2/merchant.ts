import { randomUUID } from 'node:crypto'
import { ap2Keys as keys, ap2Texts as texts } from '../../src/features/ap2-wire.ts'
import { buildBy } from '../../src/features/payments/mandates/build.ts'
import { formatMoney } from '../../src/features/payments/mandates/money.ts'
import { hashJson } from '../../src/features/payments/mandates/tokens/authorizations.ts'
import { hashText } from '../../src/features/payments/mandates/tokens/encoding.ts'
import { signJws } from '../../src/features/payments/mandates/tokens/jws.ts'
import {
  cartContentsSchema,
  contactAddressSchema,
  intentMandateSchema,
} from '../../src/features/payments/mandates/v1/types.ts'
import { parseBy } from '../../src/features/payments/mandates/violations.ts'
import { authorizeCart } from '../purchase/authorize-cart.ts'
import { currency, findProduct, type Product, priceOrder, searchCatalogue } from './catalogue.ts'
import { conclude } from './mandates.ts'
import { complete, fail, type Handle, type Incoming, type Part, refuse, type Tools } from './messages.ts'
import { type Cart, createOrders } from './orders.ts'

const cartSeconds = 1800
const methodData = { network: ['mastercard', 'paypal', 'amex'] }
type Price = ReturnType<typeof priceOrder>

/** Sells coffee makers, in AP2 0.1 and 0.2. */
export const createMerchant = (tools: Tools): Handle => {
  const { self, books } = tools
  const orders = createOrders(tools)
  const methods = Object.keys(self.agents).map((name) => ({ supported_methods: name, data: methodData }))
  const toDecimal = (minor: number): number => Number(formatMoney({ currency, minor }))

  const find = (message: Incoming, query: string, isWanted: (product: Product) => boolean) => {
    const nth = books.list('carts').length + 1
    const found = searchCatalogue(query, (one) => isWanted(one) && orders.countFree(one) > 0)
    const carts = found.map(({ sku }, at): Cart => {
      const own = { id: `cart_${nth + at}`, order: `order_${nth + at}`, sku, context: message.contextId }
      return { ...own, total: 0, expires: self.now() + cartSeconds }
    })
    books.write(
      ['contexts', message.contextId, { risk: message.get(keys.riskData) ?? null }],
      ...carts.map((cart): [string, string, object] => ['carts', cart.id, cart]),
    )
    const isOffer = message.keys.includes(keys.intentMandate) && self.unsigned_offers
    const artifacts = carts.map((cart): Part[] => {
      const { label, minor, refundDays } = findProduct(cart.sku)
      const item = { label, amount: { currency, minor }, refund_period: refundDays }
      const offer = () => ({ contents: toContents(cart, [item], { ...item, label: 'Total' }) })
      const entry = { cart_id: cart.id, item_label: label, amount: toDecimal(minor), currency }
      return [{ data: isOffer ? { [keys.cartMandate]: offer() } : { [keys.cart]: entry } }]
    })
    return { state: 'completed' as const, artifacts }
  }

  const findByIntent = (message: Incoming) => {
    const intent = conclude(parseBy(intentMandateSchema, message.get(keys.intentMandate)))
    const { merchants = [], skus = [], intent_expiry: expiry, requires_refundability: refundable } = intent
    if (Date.parse(expiry) < self.now() * 1000) refuse(`The IntentMandate has expired: ${expiry}.`)
    if (merchants.length > 0 && !merchants.includes(self.name)) return complete()
    const isWanted = ({ sku, refundDays }: Product) =>
      (skus.length === 0 || skus.includes(sku)) && (!refundable || refundDays > 0)
    return find(message, intent.natural_language_description, isWanted)
  }

  const toContents = (cart: Cart, items: Price['items'], total: Price['total'], address?: Address) => {
    const { raw } = buildBy(cartContentsSchema)({
      ...{ id: cart.id, user_cart_confirmation_required: true, merchant_name: self.name },
      payment_request: {
        method_data: methods,
        details: { id: cart.order, display_items: items, total },
        ...(address && { shipping_address: address }),
      },
      cart_expiry: new Date(cart.expires * 1000).toISOString(),
    })
    return JSON.parse(raw) as Record<string, unknown>
  }

  type Address = ReturnType<typeof readOrder>['address']
  /** The cart of a message and the address for it: with both, its price is known. */
  const readOrder = (message: Incoming) => {
    const id = message.textOf(keys.cartId) ?? fail('Missing cart_id.')
    const given = message.get(keys.shippingAddress) ?? fail('Missing shipping_address.')
    const cart = books.get<Cart>('carts', id)
    if (cart?.context !== message.contextId) return fail(`CartMandate not found for cart_id: ${id}`)
    const address = conclude(parseBy(contactAddressSchema, given, { path: [keys.shippingAddress] }))
    if (!address.country) refuse('shipping_address.country is missing: shipping and tax depend on it.')
    orders.checkUnpaid(id)
    return { cart, address, hash: hashJson(address) }
  }
  /** The cart as it was signed for this address, while it can be paid; else with a new price, end and signature. */
  const priceCart = async (
    { cart, address, hash }: ReturnType<typeof readOrder>,
    signed: 'wire' | 'checkout',
    sign: (cart: Cart, price: Price) => Promise<Partial<Cart>>,
  ): Promise<Cart> => {
    if (cart[signed] && cart.address === hash && cart.expires > self.now() + 60) return cart
    orders.checkStock(cart.sku)
    const price = priceOrder(findProduct(cart.sku), address.country ?? '')
    const priced = { total: price.total.amount.minor, address: hash, expires: self.now() + cartSeconds }
    const next = { ...cart, ...priced, ...(await sign({ ...cart, ...priced }, price)) }
    books.write(['carts', cart.id, next])
    return next
  }

  const updateCart = async (message: Incoming) => {
    const order = readOrder(message)
    const risk = books.get<{ risk: unknown }>('contexts', message.contextId)?.risk
    if (risk == null) fail(`Missing risk_data for context_id: ${message.contextId}`)
    const { wire } = await priceCart(order, 'wire', async (next, { items, total }) => {
      const contents = toContents(next, items, total, order.address)
      const claims = { issuer: self.issuer, subject: self.name, audience: self.audiences[0] }
      const times = { iat: self.now(), jti: randomUUID(), lifetime: cartSeconds }
      const authorization = await authorizeCart(contents, { ...claims, ...times }, self.signing)
      return { wire: { contents, merchant_authorization: authorization } }
    })
    return complete({ data: { [keys.cartMandate]: wire } }, { data: { [keys.riskData]: risk } })
  }

  const createCheckout = async (message: Incoming) => {
    const cart = await priceCart(readOrder(message), 'checkout', async (next, { shipping, tax }) => {
      const { sku: id, label: title, minor: price } = findProduct(next.sku)
      const totals = { subtotal: price, fulfillment: shipping, tax, total: next.total }
      const times = { iat: self.now(), exp: next.expires, jti: randomUUID() }
      const claims = {
        ...{ iss: self.issuer, ...times, id: next.order, currency },
        merchant: { id: self.issuer, name: self.name, website: self.issuer },
        line_items: [{ id: 'line_1', item: { id, title, price }, quantity: 1 }],
        totals: Object.entries(totals).map(([type, amount]) => ({ type, amount })),
      }
      return { checkout: await signJws(claims, self.signing, { typ: 'JWT' }) }
    })
    const jwt = cart.checkout ?? ''
    const checkout = {
      ...{ cart_id: cart.id, checkout_jwt: jwt, checkout_hash: hashText(jwt), currency },
      item_label: findProduct(cart.sku).label,
      ...{ amount: toDecimal(cart.total), amount_cents: cart.total },
    }
    const taken = methods.map((one): Part => ({ data: { [keys.paymentMethod]: one } }))
    return complete({ data: { [keys.checkout]: checkout } }, ...taken)
  }

  return async (message) => {
    const { text, has } = message
    const shopper =
      message.textOf(keys.shoppingAgentId) ?? fail('Unauthorized Request: Missing shopping_agent_id.')
    if (!self.shoppers.includes(shopper)) fail(`Unauthorized Request: Unknown agent '${shopper}'.`)
    if (has(keys.paymentMandate, keys.paymentMandateSdJwt)) return orders.pay(message)
    if (has(keys.intentMandate)) return findByIntent(message)
    if (has(keys.catalogSearch)) return find(message, String(message.get(keys.catalogSearch)), () => true)
    if (text === texts.createCheckout) return createCheckout(message)
    if (has(keys.cartId, keys.shippingAddress) || text === texts.updateCart) return updateCart(message)
    if (text.startsWith(texts.initiate) || text === texts.completeCheckout) return orders.pay(message)
    return refuse(`Send ${keys.intentMandate}, ${keys.catalogSearch}, ${keys.cartId} or a payment mandate.`)
  }
}
