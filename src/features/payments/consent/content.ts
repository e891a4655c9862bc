import { z } from 'zod'
import { MasonError } from '../../../state/errors.ts'
import { readJson } from '../mandates/json.ts'
import { formatMoney, type Money } from '../mandates/money.ts'
import { hashText } from '../mandates/tokens/encoding.ts'
import { parseJws } from '../mandates/tokens/jws.ts'
import { attempt } from '../mandates/tokens/token-error.ts'
import { checkCartSum, joinCartAndPayment } from '../mandates/v1/payment.ts'
import { cartMandateSchema, paymentMandateContentsSchema } from '../mandates/v1/types.ts'
import type { OpenMandatePair } from '../mandates/v2/open-mandates.ts'
import { checkoutSchema, paymentMandateSchema } from '../mandates/v2/types.ts'
import { hashReceived } from '../mandates/verify/carts.ts'
import { createViolation, parseBy, readBy, type Violation } from '../mandates/violations.ts'
import { limitSchema } from '../ports/limit-schema.ts'
import type { WalletAccount } from '../ports/run-mandates.ref.ts'
import type { UnsignedPayment } from '../ports/run-payments.ref.ts'

/** What a person who will not be present is asked to sign: see `createOpenMandates`. No merchant gets to know the wallet. */
export type OpenConsentRequest = { version: '0.2-open'; wallet?: WalletAccount | undefined } & OpenMandatePair
/** What a person is asked to sign. */
export type ConsentRequest = UnsignedPayment | OpenConsentRequest

const common = {
  type: z.literal('mason.consent.1'),
  consent_id: z.string(),
  payment_id: z.string(),
  audience: z.string(),
  nonce: z.string(),
  expires_at: z.string(),
  payment: z.string(),
}
const wallet = z.strictObject({ agent: z.string(), user_email: z.string() }).optional()
const instrument = z.string().optional()
const contentSchema = z.discriminatedUnion('version', [
  z.strictObject({ ...common, version: z.literal('0.1'), cart: z.string(), instrument }),
  z.strictObject({ ...common, version: z.literal('0.2'), checkout: z.string() }),
  z.strictObject({ ...common, version: z.literal('0.2-open'), checkout: z.string(), wallet }),
])
/** The bytes of a consent, parsed: the request, and for which payment, verifier and time. */
export type ConsentContent = z.output<typeof contentSchema>

/** Parses the bytes of a consent. Throws `invalid_request` for bytes that Mason did not make. */
export const parseContent = (text: string): ConsentContent => {
  const parsed = contentSchema.safeParse(JSON.parse(text))
  if (parsed.success) return parsed.data
  throw new MasonError('invalid_request', 'these are not the bytes of a consent')
}

/** What the page says of open mandates: all that they allow. */
const openFactsSchema = z.strictObject({ limits: z.array(limitSchema), offer_ends: z.string() })
/** See `openFactsSchema`. */
export type OpenFacts = z.infer<typeof openFactsSchema>

const nullableText = z.string().nullable()
/** What the page says of a payment; every text but the issuer is the merchant's. */
const offerFactsSchema = z.strictObject({
  payee: z.string().describe('What the merchant calls itself'),
  payee_issuer: z.string().describe('Who is paid: whose trusted key signed the cart or checkout'),
  demo: z.boolean().describe('The offer is unsigned: the payee is not known, and no money moves'),
  total: z.string(),
  items: z.array(z.strictObject({ text: z.string(), price: nullableText })),
  /** Days; null: AP2 0.2 has none. */
  refund_days: z.number().nullable(),
  /** As the merchant wrote it; null: with the consent. */
  offer_ends: nullableText,
  instrument: z.string(),
  shares: z.array(z.string()).describe('What the merchant gets to know of the person'),
  warnings: z.array(z.string()).describe('What the person should look at twice'),
})
/** See `offerFactsSchema`. */
export type OfferFacts = z.infer<typeof offerFactsSchema>

/** What is said of a payment or of open mandates. */
export const consentFactsSchema = z.union([offerFactsSchema, openFactsSchema.describe('Of open mandates')])
/** See `consentFactsSchema`. */
export type ConsentFacts = z.infer<typeof consentFactsSchema>

type TextFacts = Omit<OfferFacts, 'payee_issuer' | 'demo'>

const toText = (money: Money): string => `${formatMoney(money)} ${money.currency}`

/** Throws `invalid_request`. */
export const refuse = (message: string, remedy: string): never => {
  throw new MasonError('invalid_request', message, { remedy })
}

/** Throws `invalid_request` with why. */
export const refuseRequest = (violations: readonly Violation[]): never => {
  throw new MasonError('invalid_request', 'no person can be asked to sign this payment', {
    remedy: violations.map(({ message }) => message).join('; '),
    detail: { violations },
  })
}

const readV1 = ({ cart, payment, instrument }: Extract<UnsignedPayment, { version: '0.1' }>): TextFacts => {
  const readCart = readBy(cartMandateSchema, cart)
  const contents = readBy(paymentMandateContentsSchema, payment)
  if (!readCart.ok) return refuseRequest(readCart.violations)
  if (!contents.ok) return refuseRequest(contents.violations)
  // the executor hashes what was approved; of the cart `verifyCart` says so
  const unhashed: Violation[] = []
  if (hashReceived(JSON.parse(payment), unhashed) === null) return refuseRequest(unhashed)
  const mandate = { payment_mandate_contents: contents.value, user_authorization: 'asked for' }
  const joined = joinCartAndPayment(readCart.value, mandate, '')
  if (!joined.ok) return refuseRequest(joined.violations)
  const { payment_request, merchant_name, cart_expiry } = readCart.value.contents
  const { display_items, total } = payment_request.details
  const { payer, amount } = joined.value
  const { shipping_address } = contents.value.payment_response
  return {
    payee: merchant_name,
    total: toText(amount),
    items: display_items.map(({ label, amount: price }) => ({ text: label, price: toText(price) })),
    refund_days: Math.min(total.refund_period, ...display_items.map((item) => item.refund_period)),
    offer_ends: cart_expiry,
    instrument: instrument ?? joined.value.instrument.type,
    // the total is what the merchant signed, and carts of the samples differ from their items
    warnings:
      checkCartSum(readCart.value.contents).length === 0
        ? []
        : ['The prices of the items do not add up to the total. You pay the total.'],
    shares: [
      ...Object.values(payer).filter((text) => text !== null),
      ...(shipping_address == null ? [] : [JSON.stringify(shipping_address)]),
    ],
  }
}

const readV2 = ({ checkout, payment }: Extract<UnsignedPayment, { version: '0.2' }>): TextFacts => {
  const violations: Violation[] = []
  const jws = attempt(violations, () => parseJws(checkout, 'checkout'))
  const offer = parseBy(checkoutSchema, jws?.payload, { path: ['checkout'] })
  const mandate = readBy(paymentMandateSchema, payment)
  if (!mandate.ok) return refuseRequest(mandate.violations)
  if (violations.length > 0) return refuseRequest(violations)
  if (!offer.ok) return refuseRequest(offer.violations)
  const { payee, payment_amount, payment_instrument, transaction_id, exp } = mandate.value
  if (transaction_id !== hashText(checkout))
    return refuseRequest([
      createViolation(
        'checkout_mismatch',
        'transaction_id',
        'is not the hash of the checkout: make the mandate for this checkout',
      ),
    ])
  const amount = { currency: payment_amount.currency, minor: payment_amount.amount }
  return {
    payee: payee.website ? `${payee.name} (${payee.website})` : payee.name,
    total: toText(amount),
    items: offer.value.line_items.map(({ item, quantity }) => ({
      text: `${quantity} × ${typeof item.title === 'string' ? item.title : item.id}`,
      price: null,
    })),
    refund_days: null,
    offer_ends: exp == null ? null : new Date(exp * 1000).toISOString(),
    instrument: payment_instrument.description ?? payment_instrument.type,
    shares: [],
    warnings: [],
  }
}

/** What the texts that are signed say, and nothing else. Throws `invalid_request`. */
export const readFacts = (request: UnsignedPayment): TextFacts => {
  try {
    readJson(request.payment)
  } catch {
    throw new MasonError('invalid_request', 'the payment is no JSON')
  }
  return request.version === '0.1' ? readV1(request) : readV2(request)
}
