import type { AgentCard } from '@a2a-js/sdk'
import { z } from 'zod'
import { isJsonObject } from '../infra/lib/json-text.ts'
import { cartOfferSchema, intentMandateSchema, paymentDraftSchema } from '../payments/mandates/v1/types.ts'
import { safeParseWithInput, toViolations } from '../payments/mandates/violations.ts'
import { ap2Keys } from '../state/ap2-wire.ts'
import { malformed } from './errors.ts'
import { checkRequired, hasAp2 } from './extensions.ts'
import { checkMessage } from './messages.ts'

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
 * A mandate of AP2 0.1 must be of its type. Old forms and aliases are read, and null members are absent (AP2.md 1.5). The error
 * names the members that are wrong. Nothing else of the data is looked at.
 */
const checkMandates = (parts: readonly { data?: unknown }[]): void => {
  for (const [at, { data }] of parts.entries())
    for (const [key, schema] of schemas) {
      const has = (value: unknown): boolean => isJsonObject(value) && Object.hasOwn(value, key)
      if (Array.isArray(data) && data.some(has))
        throw malformed(`message.parts[${at}].data has "${key}" in a list: send an object with this key`)
      if (!isJsonObject(data) || !has(data)) continue
      const reasons = findReasons(schema, data[key])
      if (reasons.length > 0)
        throw malformed(
          `message.parts[${at}].data["${key}"] is invalid: ${reasons.slice(0, maxReasons).join('; ')}`,
        )
    }
}

/** Throws where what is sent lacks an extension that the card requires, or has a message that is invalid as it came. */
export const checkSend = (
  { card, extensions }: { card: AgentCard; extensions: readonly string[] },
  params: unknown,
  version: '1.0' | '0.3',
): void => {
  checkRequired(card, extensions)
  checkMessage(params, version)
  if (hasAp2(card)) checkMandates((params as { message: { parts: { data?: unknown }[] } }).message.parts)
}
