import { z } from 'zod'
import { ap2Keys } from '../../../ap2-wire.ts'
import { isObject } from '../tokens/encoding.ts'
import { safeParseWithInput, toViolations } from '../violations.ts'
import { cartOfferSchema, intentMandateSchema, paymentDraftSchema } from './types.ts'

/** Offers and drafts need no signature: what is missing for a payment is said where it is paid. */
const schemas: readonly (readonly [string, z.ZodType])[] = [
  [ap2Keys.intentMandate, intentMandateSchema],
  [ap2Keys.cartMandate, cartOfferSchema],
  [ap2Keys.paymentMandate, paymentDraftSchema],
]
const maxReasons = 5

const isoTime = z.iso.datetime({ local: true, offset: true })
const amountCodes: readonly unknown[] = ['negative_amount', 'too_many_decimals', 'amount_too_large']
/** What AP2 0.1 allows and a payment does not: any finite amount, such as a discount, and times with any offset or none. */
const isForPayment = (issue: z.core.$ZodIssue): boolean => {
  if (issue.code !== 'custom') return false
  const { params, input } = issue
  if (params?.code === 'invalid_amount') return Number.isFinite((input as { value?: unknown }).value)
  if (params?.code === 'unreadable_date' || params?.code === 'wrong_offset')
    return isoTime.safeParse(input).success
  return amountCodes.includes(params?.code)
}

/** What is wrong with a mandate. */
const findReasons = (schema: z.ZodType, value: unknown): string[] => {
  const { error } = safeParseWithInput(schema, value)
  if (!error) return []
  const counted = new z.ZodError(error.issues.filter((issue) => !isForPayment(issue)))
  return toViolations(counted).map(({ message }) => message)
}

/**
 * What is wrong with the mandates in the data of a message, to follow the name of the data; null: nothing. A mandate of AP2 0.1 must
 * be of its type. Old forms and aliases are read, and null members are absent (AP2.md 1.5). The members that are wrong are named.
 * Nothing else of the data is looked at.
 */
export const findMandateProblem = (data: unknown): string | null => {
  for (const [key, schema] of schemas) {
    const has = (value: unknown): boolean => isObject(value) && Object.hasOwn(value, key)
    if (Array.isArray(data) && data.some(has)) return ` has "${key}" in a list: send an object with this key`
    if (!isObject(data) || !has(data)) continue
    const reasons = findReasons(schema, data[key])
    if (reasons.length > 0) return `["${key}"] is invalid: ${reasons.slice(0, maxReasons).join('; ')}`
  }
  return null
}
