import { z } from 'zod'
import { hasWrongOffset, readTimeSpan } from '../calendar.ts'
import { mandateIdSchema } from '../ids.ts'
import { JsonNumber } from '../json.ts'
import { formatMoney, parseMoney } from '../money.ts'
import { isObject } from '../tokens/encoding.ts'
import { createListSchema, toMoneyOrIssue } from '../violations.ts'
import { createNamedSchema } from './names.ts'

/** The types of AP2 0.1 (src/ap2/types/*.py). Amounts are decimals on the wire and minor units here. */

const text = z.string().min(1)
const opaque = z.record(z.string(), z.unknown())
const wrongOffset = {
  message: 'has a wrong offset: write Z, or one from -12:00 to +14:00 such as +02:00',
  params: { code: 'wrong_offset' },
}
const unreadableTime = {
  message: 'is no ISO 8601 time with an offset: write 2026-04-30T12:00:00Z',
  params: { code: 'unreadable_date' },
}
const time = z.string().superRefine((value, context) => {
  if (readTimeSpan(value) === null)
    context.addIssue({ code: 'custom', ...(hasWrongOffset(value) ? wrongOffset : unreadableTime) })
})

/** PaymentCurrencyAmount: `{"currency": "USD", "value": 603.49}`. */
const moneySchema = z.codec(
  z.object({ currency: z.string(), value: z.unknown() }),
  z.object({ currency: z.string(), minor: z.int().nonnegative() }),
  {
    decode: ({ currency, value }, payload) => toMoneyOrIssue(parseMoney(value, currency), 'value', payload),
    encode: (money) => ({ currency: money.currency, value: new JsonNumber(formatMoney(money)) }),
  },
)
const itemShape = {
  label: text,
  amount: moneySchema,
  pending: z.boolean().optional(),
  /** In days. */
  refund_period: z.int().nonnegative().default(30),
}
const itemSchema = createNamedSchema(itemShape)
const shippingOptionSchema = createNamedSchema({
  id: mandateIdSchema,
  label: text,
  amount: moneySchema,
  selected: z.boolean().default(false),
})

/** An address, as the W3C's contact picker has it. */
export const contactAddressSchema = createNamedSchema({
  recipient: z.string().optional(),
  organization: z.string().optional(),
  address_line: z.array(z.string()).optional(),
  dependent_locality: z.string().optional(),
  city: z.string().optional(),
  region: z.string().optional(),
  postal_code: z.string().optional(),
  sorting_code: z.string().optional(),
  country: z.string().optional(),
  phone_number: z.string().optional(),
})
/** A way to pay that the merchant takes. */
export const paymentMethodDataSchema = createNamedSchema({ supported_methods: text, data: opaque.optional() })

/** What is to be paid, and how it can be. */
const paymentRequestSchema = createNamedSchema({
  method_data: createListSchema(paymentMethodDataSchema),
  details: createNamedSchema({
    id: mandateIdSchema,
    display_items: createListSchema(itemSchema),
    shipping_options: createListSchema(shippingOptionSchema).optional(),
    modifiers: createListSchema(
      createNamedSchema({
        supported_methods: text,
        total: itemSchema.optional(),
        additional_display_items: createListSchema(itemSchema).optional(),
        data: opaque.optional(),
      }),
    ).optional(),
    total: itemSchema,
  }),
  options: createNamedSchema({
    request_payer_name: z.boolean().default(false),
    request_payer_email: z.boolean().default(false),
    request_payer_phone: z.boolean().default(false),
    request_shipping: z.boolean().default(true),
    shipping_type: z.string().optional(),
  }).optional(),
  shipping_address: contactAddressSchema.optional(),
})
/** What the payer chose. */
const paymentResponseSchema = createNamedSchema({
  request_id: mandateIdSchema,
  method_name: text,
  details: opaque.optional(),
  shipping_address: contactAddressSchema.optional(),
  shipping_option: shippingOptionSchema.optional(),
  payer_name: z.string().optional(),
  payer_email: z.string().optional(),
  payer_phone: z.string().optional(),
})

/** What a person wants to buy. It has no signature. */
export const intentMandateSchema = createNamedSchema(
  {
    user_cart_confirmation_required: z.boolean().default(true),
    natural_language_description: text,
    merchants: z.array(z.string()).optional(),
    skus: z.array(z.string()).optional(),
    requires_refundability: z.boolean().default(false),
    intent_expiry: time,
  },
  { required_refundability: 'requires_refundability' },
)
/** A wish to buy. */
export type IntentMandate = z.output<typeof intentMandateSchema>

const contentsShape = {
  id: mandateIdSchema,
  user_cart_confirmation_required: z.boolean(),
  payment_request: paymentRequestSchema,
}
const oldContentsNames = { user_signature_required: 'user_cart_confirmation_required' }
const oldCartNames = { merchant_signature: 'merchant_authorization' }
/** What a merchant signs: the cart, until when it can be paid, and the merchant's name. */
export const cartContentsSchema = createNamedSchema(
  { ...contentsShape, cart_expiry: time, merchant_name: text },
  oldContentsNames,
)
/** A cart. */
export type CartContents = z.output<typeof cartContentsSchema>
/** A cart that can be paid: signed, with an expiry and a final total. */
export const cartMandateSchema = createNamedSchema(
  {
    contents: cartContentsSchema.refine(
      ({ payment_request }) => payment_request.details.total.pending !== true,
      {
        path: ['payment_request', 'details', 'total', 'pending'],
        message: 'says that the total is not final: wait for the final cart',
        params: { code: 'pending_total' },
        when: ({ issues }) => issues.length === 0,
      },
    ),
    merchant_authorization: text,
  },
  oldCartNames,
)
/** A signed cart. */
export type CartMandate = z.output<typeof cartMandateSchema>
/** A cart to look at, such as those of the samples and of the extension's listing: never to be paid. */
export const cartOfferSchema = createNamedSchema(
  {
    contents: createNamedSchema(
      { ...contentsShape, cart_expiry: time.optional(), merchant_name: text.optional() },
      oldContentsNames,
    ),
    merchant_authorization: text.optional(),
  },
  oldCartNames,
)

/** The form of the first draft: `{payment_details: {cart_mandate, ...}, creation_time}` (AP2.md 1.5, row 5). */
const readOldPayment = (value: object): object => {
  if (
    !('payment_details' in value) ||
    !isObject(value.payment_details) ||
    'payment_mandate_contents' in value
  )
    return value
  const {
    payment_details: old,
    creation_time,
    ...rest
  } = value as Record<string, unknown> & { payment_details: object }
  const { cart_mandate, payment_request_id, merchant_agent_card, payment_method, amount, ...others } =
    old as Record<string, unknown>
  return {
    ...rest,
    payment_mandate_contents: {
      ...others,
      payment_details_id: payment_request_id,
      payment_details_total: { amount },
      payment_response: {
        request_id: payment_request_id,
        ...(isObject(payment_method) && {
          method_name: payment_method.supported_methods,
          details: payment_method.data,
        }),
      },
      merchant_agent: isObject(merchant_agent_card) ? merchant_agent_card.name : undefined,
      timestamp: creation_time,
    },
    user_authorization: cart_mandate,
  }
}
const paymentShape = {
  payment_details_id: mandateIdSchema,
  payment_response: paymentResponseSchema,
  merchant_agent: text,
  timestamp: time.optional(),
}
/** What a person signs: the payment of one cart. */
export const paymentMandateContentsSchema = createNamedSchema({
  payment_mandate_id: mandateIdSchema,
  payment_details_total: itemSchema,
  ...paymentShape,
})
/** A payment that the person signed. */
export const paymentMandateV1Schema = createNamedSchema(
  { payment_mandate_contents: paymentMandateContentsSchema, user_authorization: text },
  {},
  readOldPayment,
)
/** A signed payment. */
export type PaymentMandateV1 = z.output<typeof paymentMandateV1Schema>
/** A payment to look at: not signed, or in the form of the first draft. */
export const paymentDraftSchema = createNamedSchema(
  {
    payment_mandate_contents: createNamedSchema({
      payment_mandate_id: mandateIdSchema.optional(),
      payment_details_total: createNamedSchema({ ...itemShape, label: text.optional() }),
      ...paymentShape,
    }),
    user_authorization: text.optional(),
  },
  {},
  readOldPayment,
)

const outcomes = ['merchant_confirmation_id', 'error_message', 'failure_message'] as const
/** What became of a payment: a success has `merchant_confirmation_id`, an error or a failure its message, and only one of them. */
export const paymentReceiptV1Schema = createNamedSchema({
  payment_mandate_id: mandateIdSchema,
  timestamp: time,
  payment_id: mandateIdSchema,
  amount: moneySchema,
  payment_status: createNamedSchema({
    merchant_confirmation_id: text.optional(),
    psp_confirmation_id: text.optional(),
    network_confirmation_id: text.optional(),
    error_message: text.optional(),
    failure_message: text.optional(),
  }).refine((status) => outcomes.filter((name) => status[name] !== undefined).length === 1, {
    message: `must have exactly one of ${outcomes.join(', ')}`,
    params: { code: 'ambiguous_status' },
  }),
  payment_method_details: opaque.optional(),
})
