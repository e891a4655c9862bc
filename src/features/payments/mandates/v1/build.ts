import { buildBy } from '../build.ts'
import { paymentMandateContentsSchema, paymentReceiptV1Schema } from './types.ts'

/** Writes the contents of a payment mandate: what the person signs. */
export const buildPaymentMandateContents = buildBy(paymentMandateContentsSchema)
/** Writes a receipt. */
export const buildPaymentReceiptV1 = buildBy(paymentReceiptV1Schema)
