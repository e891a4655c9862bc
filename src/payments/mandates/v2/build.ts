import type { z } from 'zod'
import { MasonError } from '../../../state/errors.ts'
import { type Built, buildBy } from '../build.ts'
import { JsonNumber } from '../json.ts'
import { formatMoney, type Money } from '../money.ts'
import { parseBy } from '../violations.ts'
import {
  checkoutConstraintSchemas,
  checkoutMandateSchema,
  checkoutReceiptSchema,
  openCheckoutMandateSchema,
  openPaymentMandateSchema,
  paymentConstraintSchemas,
  paymentMandateSchema,
  paymentReceiptSchema,
} from './types.ts'

/** Writes a closed checkout mandate of AP2 0.2. */
export const buildCheckoutMandate = buildBy(checkoutMandateSchema)
/** Writes a closed payment mandate. */
export const buildPaymentMandate = buildBy(paymentMandateSchema)
/** Writes the receipt of a checkout. */
export const buildCheckoutReceipt = buildBy(checkoutReceiptSchema)
/** Writes the receipt of a payment. */
export const buildPaymentReceipt = buildBy(paymentReceiptSchema)

const checkConstraints = (
  constraints: readonly { type?: string | null | undefined }[],
  schemas: Record<string, z.ZodType>,
  required: string,
): void => {
  const problems = constraints.flatMap((constraint, i) => {
    const schema = Object.hasOwn(schemas, constraint.type ?? '') ? schemas[constraint.type ?? ''] : undefined
    if (!schema) return [`constraints[${i}].type must be one of ${Object.keys(schemas).join(', ')}`]
    const parsed = parseBy(schema, constraint, { path: ['constraints', i] })
    return parsed.ok ? [] : parsed.violations.map(({ message }) => message)
  })
  if (!constraints.some(({ type }) => type === required))
    problems.push(`constraints needs a ${required}: add it`)
  if (problems.length > 0)
    throw new MasonError('invalid_request', 'the mandate cannot be issued', { remedy: problems.join('; ') })
}

/** Writes an open checkout mandate: every constraint is known and complete. */
export const buildOpenCheckoutMandate = (value: z.output<typeof openCheckoutMandateSchema>): Built => {
  checkConstraints(value.constraints, checkoutConstraintSchemas, 'checkout.line_items')
  return buildBy(openCheckoutMandateSchema)(value)
}

/** Writes an open payment mandate: every constraint is known and complete. */
export const buildOpenPaymentMandate = (value: z.output<typeof openPaymentMandateSchema>): Built => {
  checkConstraints(value.constraints, paymentConstraintSchemas, 'payment.reference')
  return buildBy(openPaymentMandateSchema)(value)
}

/** The constraint `payment.budget`, whose maximum is a decimal in major units on the wire. */
export const buildBudget = (max: Money) => ({
  type: 'payment.budget',
  currency: max.currency,
  max: new JsonNumber(formatMoney(max)),
})
