import { buildBy } from '../build.ts'
import {
  cartContentsSchema,
  cartMandateSchema,
  intentMandateSchema,
  paymentMandateContentsSchema,
  paymentMandateV1Schema,
  paymentReceiptV1Schema,
} from './types.ts'

/** Writes an intent mandate of AP2 0.1. */
export const buildIntentMandate = buildBy(intentMandateSchema)
/** Writes the contents of a cart: what `cart_hash` is made from. */
export const buildCartContents = buildBy(cartContentsSchema)
/** Writes a cart that its merchant has signed. */
export const buildCartMandate = buildBy(cartMandateSchema)
/** Writes the contents of a payment mandate: what the person signs. */
export const buildPaymentMandateContents = buildBy(paymentMandateContentsSchema)
/** Writes a payment mandate that the person has signed. */
export const buildPaymentMandateV1 = buildBy(paymentMandateV1Schema)
/** Writes a receipt. */
export const buildPaymentReceiptV1 = buildBy(paymentReceiptV1Schema)
