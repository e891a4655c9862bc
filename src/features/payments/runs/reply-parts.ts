import { z } from 'zod'
import type { Json } from '../../../state/runtime-state.ts'
import { toPlainLine } from '../../../state/text/plain-line.ts'
import { ap2Keys } from '../../ap2-wire.ts'
import { maxIdChars } from '../mandates/ids.ts'
import { JsonNumber } from '../mandates/json.ts'
import { currencyExponents, formatMoney, type Money, parseMinor, parseMoney } from '../mandates/money.ts'
import { hashText, isObject } from '../mandates/tokens/encoding.ts'
import { parseJws } from '../mandates/tokens/jws.ts'
import { attempt } from '../mandates/tokens/token-error.ts'
import { cartMandateSchema, cartOfferSchema, contactAddressSchema } from '../mandates/v1/types.ts'
import { readTotal } from '../mandates/v2/total.ts'
import { checkoutSchema } from '../mandates/v2/types.ts'
import { parseBy, readBy, type Violation } from '../mandates/violations.ts'
import type { MerchantOffer, Price, ReplyParts } from '../ports/run-payments.ref.ts'

/** So many carts of a reply are read; a shop window has fewer. */
const maxOffers = 50
const maxProblems = 5
const maxLines = 50
const maxNameChars = 200
const maxOpaqueChars = 10_000
const maxMethods = 50

type Data = readonly { [key: string]: Json }[]

const toLine = (text: string): string => toPlainLine(text, maxNameChars)

/** As a person reads it. Made from digits, without a double. */
const toPrice = (money: Money): Price => {
  const digits = currencyExponents.get(money.currency) ?? 0
  const style = { style: 'currency', currency: money.currency } as const
  const format = new Intl.NumberFormat('en-US', {
    ...style,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
  return { ...money, text: format.format(formatMoney(money) as `${number}`) }
}

/** What a cart offers, and why it cannot be read, or not be paid. */
type Read = { offer: MerchantOffer | null; problem: string | null; methods?: Json[] }
const refuse = (problem: string): Read => ({ offer: null, problem })
const toProblem = ([first]: readonly Violation[]): string => first?.message ?? 'it cannot be read'

/** A number of a reply keeps its decimals: `603.49` is no double here. */
const toExact = (value: unknown): unknown =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? new JsonNumber(String(value)) : value

/** The JSON text of a value; none where it is nested too deeply. */
export const toJsonText = (value: unknown): string => {
  try {
    return JSON.stringify(value)
  } catch {
    return ''
  }
}

/** Without exact numbers, which are no data of a run. */
const toPlain = (value: unknown): Json[] => JSON.parse(JSON.stringify(value)) as Json[]

const readCart = (value: Json): Read => {
  const raw = toJsonText(value)
  const read = readBy(cartOfferSchema, raw)
  if (!read.ok) return refuse(toProblem(read.violations))
  const { contents, merchant_authorization } = read.value
  const { id, payment_request, cart_expiry, merchant_name } = contents
  const { total, display_items } = payment_request.details
  // what says that it is signed must have all that a payment needs
  const signed = merchant_authorization === undefined ? null : readBy(cartMandateSchema, raw)
  const offer: MerchantOffer = {
    version: '0.1',
    cart_id: id,
    label: toLine(display_items[0]?.label ?? total.label),
    total: toPrice(total.amount),
    lines: display_items.slice(0, maxLines).map(({ label, amount, refund_period }) => ({
      label: toLine(label),
      price: toPrice(amount),
      refund_days: refund_period,
    })),
    expires_at: cart_expiry ?? null,
    merchant: merchant_name === undefined ? null : toLine(merchant_name),
    refund_days: Math.min(
      total.refund_period,
      ...display_items.slice(maxLines).map((item) => item.refund_period),
    ),
    signed: signed?.ok ? { id, document: value } : null,
  }
  const problem = signed && !signed.ok ? toProblem(signed.violations) : null
  return { offer, problem, methods: signed?.ok ? toPlain(payment_request.method_data) : [] }
}

const entrySchema = z.looseObject({
  cart_id: z.string().min(1).max(maxIdChars),
  item_label: z.string().min(1),
  currency: z.string(),
  amount: z.unknown().optional(),
  amount_cents: z.unknown().optional(),
  checkout_jwt: z.string().optional(),
  checkout_hash: z.string().optional(),
})

const readEntry = (value: Json): Read => {
  const read = parseBy(entrySchema, value)
  if (!read.ok) return refuse(toProblem(read.violations))
  const { cart_id, item_label, currency, amount, amount_cents, checkout_jwt, checkout_hash } = read.value
  const money =
    amount_cents == null ? parseMoney(toExact(amount), currency) : parseMinor(amount_cents, currency)
  if ('code' in money) return refuse(`amount ${money.message}`)
  const total = toPrice(money)
  const label = toLine(item_label)
  const offer: MerchantOffer = {
    version: '0.2',
    cart_id,
    label,
    total,
    lines: [{ label, price: total, refund_days: null }],
    signed: null,
    expires_at: null,
    refund_days: null,
    merchant: null,
  }
  if (checkout_jwt === undefined) return { offer, problem: null }
  if (checkout_hash !== undefined && checkout_hash !== hashText(checkout_jwt))
    return refuse('checkout_hash is not the hash of its checkout_jwt')
  return readCheckout(offer, checkout_jwt)
}

/** What the signed checkout says counts; what is said beside it must be the same. */
const readCheckout = (offer: MerchantOffer, jwt: string): Read => {
  const violations: Violation[] = []
  const claims = attempt(violations, () => parseJws(jwt, 'checkout_jwt'))
  const checkout = claims && parseBy(checkoutSchema, claims.payload, { path: ['checkout_jwt'] })
  if (!checkout) return refuse(toProblem(violations))
  if (!checkout.ok) return refuse(toProblem(checkout.violations))
  const { id, currency, merchant, line_items, totals, exp } = checkout.value
  if (!id) return refuse(`the checkout_jwt has no id of ${maxIdChars} characters or less`)
  const sums = (Array.isArray(totals) ? totals : []).filter(isObject).slice(0, maxLines)
  const read = (minor: unknown): Money | null => {
    const money = parseMinor(minor, currency ?? '')
    return 'code' in money ? null : money
  }
  const total = readTotal(checkout.value)
  if (typeof total === 'string') return refuse(`the checkout_jwt ${total}`)
  if (total.currency !== offer.total.currency || total.minor !== offer.total.minor)
    return refuse(`the checkout_jwt has another total than ${offer.total.text}`)
  const toLines = (entries: readonly { label: unknown; minor: unknown }[]): MerchantOffer['lines'] =>
    entries.flatMap(({ label, minor }) => {
      const money = read(minor)
      return money && typeof label === 'string'
        ? [{ label: toLine(label), price: toPrice(money), refund_days: null }]
        : []
    })
  const items = toLines(
    line_items.slice(0, maxLines).map(({ item, quantity }) => ({
      label: typeof item.title === 'string' && quantity !== 1 ? `${quantity} × ${item.title}` : item.title,
      minor: typeof item.price === 'number' ? item.price * quantity : item.price,
    })),
  )
  const added = toLines(
    sums
      .filter(({ type }) => type !== 'total' && type !== 'subtotal')
      .map(({ type, amount }) => ({ label: type, minor: amount })),
  )
  const checked: MerchantOffer = {
    ...offer,
    lines: [...items, ...added.filter(({ price }) => price.minor > 0)],
    expires_at: typeof exp === 'number' && Math.abs(exp) < 1e11 ? new Date(exp * 1000).toISOString() : null,
    merchant: merchant?.name ? toLine(merchant.name) : null,
    signed: { id, document: jwt },
  }
  return { offer: checked, problem: null }
}

/** All values of a key, in all parts: peers put several into one (AP2.md 1.5, row 9). */
const listValues = (data: Data, key: string): Json[] =>
  data.flatMap((part) => (Object.hasOwn(part, key) && part[key] != null ? [part[key]] : []))

const isShort = (value: Json): value is string =>
  typeof value === 'string' && value !== '' && value.length <= maxIdChars
/** A person chooses by it, so it shows all that it is. */
const isName = (value: Json): value is string => isShort(value) && toLine(value) === value

/** Opaque to us, for the merchant alone: a text, or of some peers an object. */
const toOpaque = (value: Json | undefined): string | null => {
  const text = value === undefined || typeof value === 'string' ? value : toJsonText(value)
  return text && text.length <= maxOpaqueChars ? text : null
}

/** What the data parts of a reply say, by the keys of AP2 0.1 and 0.2. Pure; what cannot be read is a problem, never an error. */
export const readReplyParts = (data: Data): ReplyParts => {
  const carts = listValues(data, ap2Keys.cartMandate).map((value) => () => readCart(value))
  const entries = [ap2Keys.checkout, ap2Keys.cart].flatMap((key) =>
    listValues(data, key).map((value) => () => readEntry(value)),
  )
  const all = [...carts, ...entries]
  const read = all.slice(0, maxOffers).map((one) => one())
  const [address] = listValues(data, ap2Keys.contactAddress)
  const lists = listValues(data, ap2Keys.methodAliases)
  const aliases = lists.flatMap((list) => (Array.isArray(list) ? list : [list])).filter(isName)
  const left = all.length - read.length
  return {
    offers: read.flatMap(({ offer }) => offer ?? []),
    problems: [
      ...read.flatMap(({ problem }) => (problem === null ? [] : toLine(problem))).slice(0, maxProblems),
      ...(left > 0 ? [`it has ${left} carts more than are read`] : []),
    ],
    methods: [
      ...listValues(data, ap2Keys.paymentMethod).flat(),
      ...read.flatMap(({ methods = [] }) => methods),
    ].slice(0, maxMethods),
    address: address !== undefined && parseBy(contactAddressSchema, address).ok ? address : null,
    aliases: lists.length === 0 ? null : [...new Set(aliases)].slice(0, maxMethods),
    token: listValues(data, ap2Keys.token).find(isShort) ?? null,
    risk_data: toOpaque(listValues(data, ap2Keys.riskData)[0]),
  }
}
