import { z } from 'zod'
import { frequencies } from '../calendar.ts'
import { mandateIdSchema } from '../ids.ts'
import { parseMinor, parseMoney } from '../money.ts'
import { createListSchema, toMoneyOrIssue } from '../violations.ts'

/** The types of AP2 0.2 (code/sdk/schemas of tag v0.2.0). Unknown members stay: presets must reappear unchanged. */

const text = z.string().min(1)
const seconds = z.int().nonnegative()
const currency = z.string()
/** Sums of 10,000 stay exact. */
const quantity = z.int().max(1_000_000_000)

/**
 * An entry of a list of what is allowed. One whose disclosure was not sent (`{"...": digest}`) has no members to match: it allows
 * nothing, and is no error.
 */
const createEntriesSchema = <Shape extends z.core.$ZodLooseShape>(
  schema: z.ZodObject<Shape, z.core.$loose>,
) => createListSchema(schema.partial())

/** Who receives a payment. */
const merchantSchema = z.looseObject({ id: mandateIdSchema, name: text, website: z.string().nullish() })
/** What pays. */
const paymentInstrumentSchema = z.looseObject({
  id: mandateIdSchema,
  type: text,
  description: z.string().nullish(),
})
/** A payment initiation service provider. */
const pispSchema = z.looseObject({ legal_name: text, brand_name: text, domain_name: text })
/** An amount in minor units. */
const amountSchema = z.looseObject({ amount: z.custom<number>(), currency }).superRefine((value, payload) => {
  toMoneyOrIssue(parseMinor(value.amount, value.currency), 'amount', payload)
})
const cnfSchema = z.looseObject({
  jwk: z.looseObject({ kty: z.literal('EC'), crv: z.literal('P-256'), x: text, y: text }),
})
const times = { iat: seconds.nullish(), exp: seconds.nullish() }

/** The checkout that a merchant signed, approved. */
export const checkoutMandateSchema = z.looseObject({
  vct: z.literal('mandate.checkout.1'),
  checkout_jwt: text,
  checkout_hash: text,
  ...times,
})
/** Closed: approves one checkout. */
export type CheckoutMandate = z.output<typeof checkoutMandateSchema>

const paymentFields = {
  payee: merchantSchema,
  payment_amount: amountSchema,
  payment_instrument: paymentInstrumentSchema,
  pisp: pispSchema.nullish(),
  execution_date: text.nullish(),
  risk_data: z.record(z.string(), z.unknown()).nullish(),
}
/** One payment, approved. */
export const paymentMandateSchema = z.looseObject({
  vct: z.literal('mandate.payment.1'),
  transaction_id: mandateIdSchema,
  ...paymentFields,
  ...times,
})
/** Closed: approves one payment. */
export type PaymentMandateV2 = z.output<typeof paymentMandateSchema>

/** Constraints are read one by one, so that an unknown one is a violation of its own. */
const constraints = createListSchema(z.looseObject({ type: z.string().nullish() }), 200)
/** Checkouts that an agent may complete. */
export const openCheckoutMandateSchema = z.looseObject({
  vct: z.literal('mandate.checkout.open.1'),
  constraints,
  cnf: cnfSchema,
  ...times,
})
/** Open: its constraints bind later checkouts. */
export type OpenCheckoutMandate = z.output<typeof openCheckoutMandateSchema>
/** Payments that an agent may make. */
export const openPaymentMandateSchema = z.looseObject({
  vct: z.literal('mandate.payment.open.1'),
  constraints,
  cnf: cnfSchema,
  ...paymentFields,
  payee: merchantSchema.nullish(),
  payment_amount: amountSchema.nullish(),
  payment_instrument: paymentInstrumentSchema.nullish(),
  ...times,
})
/** Open: its constraints bind later payments. */
export type OpenPaymentMandate = z.output<typeof openPaymentMandateSchema>

const lineItemRequirementSchema = z.looseObject({
  id: mandateIdSchema,
  acceptable_items: createEntriesSchema(z.looseObject({ id: mandateIdSchema, title: z.string().nullish() })),
  quantity: quantity.positive(),
})
/** So many of a kind of item a checkout may have. */
export type LineItemRequirement = z.output<typeof lineItemRequirementSchema>
/** What limits a checkout, by type. */
export const checkoutConstraintSchemas = {
  'checkout.allowed_merchants': z.looseObject({ allowed: createEntriesSchema(merchantSchema) }),
  'checkout.line_items': z.looseObject({ items: createListSchema(lineItemRequirementSchema, 200) }),
} as const
/** What limits a payment, by type. `amount_range` is in minor units, `budget` in major units. */
export const paymentConstraintSchemas = {
  'payment.amount_range': z
    .looseObject({ currency, max: z.unknown(), min: z.unknown().optional() })
    .transform((value, ctx) => ({
      ...value,
      max: toMoneyOrIssue(parseMinor(value.max, value.currency), 'max', ctx).minor,
      min: value.min == null ? 0 : toMoneyOrIssue(parseMinor(value.min, value.currency), 'min', ctx).minor,
    })),
  'payment.allowed_payees': z.looseObject({ allowed: createEntriesSchema(merchantSchema) }),
  'payment.allowed_payment_instruments': z.looseObject({
    allowed: createEntriesSchema(paymentInstrumentSchema),
  }),
  'payment.allowed_pisps': z.looseObject({ allowed: createEntriesSchema(pispSchema) }),
  'payment.reference': z.looseObject({ conditional_transaction_id: text }),
  'payment.agent_recurrence': z.looseObject({
    frequency: z.enum(frequencies),
    max_occurrences: z.int().nonnegative().nullish(),
  }),
  'payment.budget': z.looseObject({ currency, max: z.unknown() }).transform((value, ctx) => ({
    ...value,
    max: toMoneyOrIssue(parseMoney(value.max, value.currency), 'max', ctx).minor,
  })),
  'payment.execution_date': z.looseObject({ not_before: text.nullish(), not_after: text.nullish() }),
} as const

/** The documents' own example names the item of a line `product`. */
const readItem = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'product' in value && !('item' in value)
    ? { ...value, item: value.product }
    : value
/** UCP's checkout, the payload of `checkout_jwt`: what constraints look at. */
export const checkoutSchema = z.looseObject({
  id: mandateIdSchema.nullish(),
  merchant: merchantSchema.partial().nullish(),
  currency: currency.nullish(),
  line_items: createListSchema(
    z.preprocess(
      readItem,
      z.looseObject({ item: z.looseObject({ id: mandateIdSchema }), quantity: quantity.nonnegative() }),
    ),
  ),
})
/** What a merchant offers. */
export type Checkout = z.output<typeof checkoutSchema>

/** `result: success|error` of agent_authorization.md is read as `status: Success|Error` of the schemas, which is what is written. */
const createReceiptSchema = <Schema extends z.ZodType>(schema: Schema) =>
  z.codec(z.unknown(), schema, {
    decode: (value) => {
      if (typeof value !== 'object' || value === null || !('result' in value) || 'status' in value)
        return value as never
      const { result, ...rest } = value
      return {
        ...rest,
        status: result === 'success' ? 'Success' : result === 'error' ? 'Error' : result,
      } as never
    },
    encode: (value) => value,
  })
const receiptFields = { iss: z.string(), iat: seconds, reference: text }
const errorFields = {
  status: z.literal('Error'),
  ...receiptFields,
  error: text,
  error_description: z.string().nullish(),
}

/** What became of a checkout. */
export const checkoutReceiptSchema = createReceiptSchema(
  z.discriminatedUnion('status', [
    z.looseObject({ status: z.literal('Success'), ...receiptFields, order_id: text }),
    z.looseObject(errorFields),
  ]),
)
/** Signed by the merchant. */
export type CheckoutReceipt = z.output<typeof checkoutReceiptSchema>
/** What became of a payment. */
export const paymentReceiptSchema = createReceiptSchema(
  z.discriminatedUnion('status', [
    z.looseObject({
      status: z.literal('Success'),
      ...receiptFields,
      payment_id: text,
      psp_confirmation_id: text,
      network_confirmation_id: text,
    }),
    z.looseObject({ ...errorFields, payment_id: text }),
  ]),
)
/** Signed by the party that processed the payment. */
export type PaymentReceiptV2 = z.output<typeof paymentReceiptSchema>

/** What was paid under an open payment mandate so far: in minor units, and when last, in epoch seconds. */
export const spentSchema = z.object({
  amount_minor: z.int().nonnegative(),
  uses: z.int().nonnegative(),
  last_used_at: z.number().nonnegative().nullish(),
})
/** The payments under an open mandate so far. */
export type Spent = z.output<typeof spentSchema>
