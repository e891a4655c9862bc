import { buildBy } from '../build.ts'
import { cartContentsSchema, paymentMandateContentsSchema, paymentReceiptV1Schema } from './types.ts'

/** Writes the contents of a cart: what `cart_hash` is made from. */
export const buildCartContents = buildBy(cartContentsSchema)
/** Writes the contents of a payment mandate: what the person signs. */
export const buildPaymentMandateContents = buildBy(paymentMandateContentsSchema)
/** Writes a receipt. */
export const buildPaymentReceiptV1 = buildBy(paymentReceiptV1Schema)
