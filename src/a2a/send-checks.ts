import type { AgentCard } from '@a2a-js/sdk'
import { cartOfferSchema, intentMandateSchema, paymentDraftSchema } from '../payments/mandates/v1/types.ts'
import { readBy } from '../payments/mandates/violations.ts'
import { ap2Keys } from '../state/ap2-wire.ts'
import { malformed } from './errors.ts'
import { checkRequired, hasAp2 } from './extensions.ts'
import { checkMessage } from './messages.ts'

/** Offers and drafts need no signature: what is missing for a payment is said where it is paid. */
const schemas = {
  [ap2Keys.intentMandate]: intentMandateSchema,
  [ap2Keys.cartMandate]: cartOfferSchema,
  [ap2Keys.paymentMandate]: paymentDraftSchema,
}
const maxReasons = 5

/**
 * A mandate of AP2 0.1 must be of its type. Old forms and aliases are read, null is absent (AP2.md 1.5). The error names the members
 * that are wrong.
 */
const checkMandates = (parts: readonly { data?: unknown }[]): void => {
  for (const [at, { data }] of parts.entries())
    for (const [key, value] of Object.entries(data ?? {})) {
      if (!Object.hasOwn(schemas, key) || value === null) continue
      const read = readBy(schemas[key as keyof typeof schemas], JSON.stringify(value))
      if (read.ok) continue
      const reasons = read.violations.slice(0, maxReasons).map(({ message }) => message)
      throw malformed(`message.parts[${at}].data["${key}"] is invalid: ${reasons.join('; ')}`)
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
