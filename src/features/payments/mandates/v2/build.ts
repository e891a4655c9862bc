import { buildBy } from '../build.ts'
import { JsonNumber } from '../json.ts'
import { formatMoney, type Money } from '../money.ts'
import { paymentMandateSchema } from './types.ts'

/** Writes a closed payment mandate. */
export const buildPaymentMandate = buildBy(paymentMandateSchema)

/** The constraint `payment.budget`, whose maximum is a decimal in major units on the wire. */
export const buildBudget = (max: Money) => ({
  type: 'payment.budget',
  currency: max.currency,
  max: new JsonNumber(formatMoney(max)),
})
