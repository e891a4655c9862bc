import type { z } from 'zod'
import { computeNextUse, readTimeSpan } from '../calendar.ts'
import { isSameJson } from '../json.ts'
import { formatMoney } from '../money.ts'
import { createViolation, parseBy, toFieldPath, type Violation } from '../violations.ts'
import { checkLineItems } from './line-items.ts'
import {
  type Checkout,
  checkoutConstraintSchemas,
  type OpenCheckoutMandate,
  type OpenPaymentMandate,
  type PaymentMandateV2,
  paymentConstraintSchemas,
  type Spent,
} from './types.ts'

/** What payment constraints are decided by beside the mandates. `now` is in epoch seconds. */
export type PaymentFacts = {
  now: number
  /** The `sd_hash` of the open checkout mandate that was verified with this payment. */
  openCheckoutHash?: string | null | undefined
  spent?: Spent | null | undefined
}

type Refuse = (code: string, message: string, member?: string) => Violation
type Checks<Schemas extends Record<string, z.ZodType>, Subject> = {
  [Type in keyof Schemas]: (
    constraint: z.output<Schemas[Type]>,
    subject: Subject,
    refuse: Refuse,
    facts: PaymentFacts,
  ) => (Violation | false)[]
}

type Merchant = {
  id?: string | null | undefined
  name?: string | undefined
  website?: string | null | undefined
}

/** By id; where one of them has none, by name and website. */
const matchesMerchant = (allowed: object, merchant: Merchant): boolean => {
  if ('...' in allowed) return false
  const { id, name, website }: Merchant = allowed
  if (id && merchant.id) return id === merchant.id
  return Boolean(name && website) && name === merchant.name && website === merchant.website
}

const checkoutChecks: Checks<typeof checkoutConstraintSchemas, Checkout> = {
  'checkout.allowed_merchants': ({ allowed }, { merchant }, refuse) => [
    !(merchant && allowed.some((entry) => matchesMerchant(entry, merchant))) &&
      refuse(
        'merchant_not_allowed',
        'no disclosed entry allows the merchant of the checkout: buy from one of them',
      ),
  ],
  'checkout.line_items': ({ items }, checkout, refuse) =>
    checkLineItems(items, checkout, refuse('', '', 'items').field),
}

const refuseCurrency = (paid: string, currency: string, refuse: Refuse): Violation =>
  refuse('currency_mismatch', `the payment is in ${paid}: pay in ${currency}`, 'currency')

const paymentChecks: Checks<typeof paymentConstraintSchemas, PaymentMandateV2> = {
  'payment.amount_range': ({ currency, min, max }, { payment_amount: paid }, refuse) => {
    if (paid.currency !== currency) return [refuseCurrency(paid.currency, currency, refuse)]
    const show = (minor: number) => `${formatMoney({ currency, minor })} ${currency}`
    return [
      !(paid.amount <= max) &&
        refuse('amount_above_max', `${show(paid.amount)} is more than ${show(max)}: pay at most that`, 'max'),
      !(paid.amount >= min) &&
        refuse(
          'amount_below_min',
          `${show(paid.amount)} is less than ${show(min)}: pay at least that`,
          'min',
        ),
    ]
  },
  'payment.allowed_payees': ({ allowed }, { payee }, refuse) => [
    !allowed.some((entry) => matchesMerchant(entry, payee)) &&
      refuse('payee_not_allowed', 'no disclosed entry allows the payee: pay one of them'),
  ],
  'payment.allowed_payment_instruments': ({ allowed }, { payment_instrument: { id } }, refuse) => [
    !allowed.some((entry) => !('...' in entry) && entry.id === id) &&
      refuse(
        'instrument_not_allowed',
        'no disclosed entry allows the payment instrument: pay with one of them',
      ),
  ],
  'payment.allowed_pisps': ({ allowed }, { pisp }, refuse) => [
    !(
      pisp &&
      allowed.some((entry) => pispNames.every((name) => !('...' in entry) && entry[name] === pisp[name]))
    ) && refuse('pisp_not_allowed', 'no disclosed entry allows the provider `pisp`: name one of them'),
  ],
  'payment.reference': ({ conditional_transaction_id: expected }, _, refuse, { openCheckoutHash: hash }) => [
    !hash
      ? refuse('checkout_unknown', 'the open checkout mandate is not known: verify it, and pass its hash')
      : hash !== expected &&
        refuse(
          'reference_mismatch',
          'is not the hash of the open checkout mandate: send the pair that belongs together',
        ),
  ],
  'payment.agent_recurrence': ({ frequency, max_occurrences: most }, _, refuse, { spent, now }) => {
    if (!spent) return [refuse('spent_unknown', 'earlier payments are not known: pass `spent`')]
    const { uses, last_used_at: last } = spent
    const isTooMany = most != null && !(uses < most)
    const over =
      isTooMany &&
      refuse('max_occurrences_reached', `it was used ${uses} of ${most} times: get a new mandate`)
    if (uses === 0 || frequency === 'ON_DEMAND') return [over]
    if (last == null)
      return [
        over,
        refuse('last_use_unknown', 'the last payment is not dated: pass `spent.last_used_at`', 'frequency'),
      ]
    const next = computeNextUse(last * 1000, frequency)
    const isEarly = !(now * 1000 >= next)
    const date = Number.isFinite(next) ? new Date(next).toISOString().slice(0, 10) : 'an unknown date'
    return [
      over,
      isEarly &&
        refuse('too_early', `it can be used again on ${date} (UTC, ${frequency}): wait`, 'frequency'),
    ]
  },
  'payment.budget': ({ currency, max }, { payment_amount: paid }, refuse, { spent }) => {
    if (paid.currency !== currency) return [refuseCurrency(paid.currency, currency, refuse)]
    if (!spent) return [refuse('spent_unknown', 'earlier payments are not known: pass `spent`')]
    const rest = max - spent.amount_minor
    const left = `${formatMoney({ currency, minor: Math.max(rest, 0) })} ${currency}`
    return [
      !(paid.amount <= rest) &&
        refuse('budget_exceeded', `${left} is left of the budget: pay at most that`, 'max'),
    ]
  },
  'payment.execution_date': (window, { execution_date }, refuse, { now }) => {
    // absent: at once
    const date = execution_date ? readTimeSpan(execution_date) : { from: now * 1000, to: now * 1000 }
    const unreadable =
      'is no ISO 8601 date, or a time without an offset: write 2026-04-30 or 2026-04-30T12:00:00Z'
    if (!date) return [refuse('unreadable_date', `\`execution_date\` of the payment ${unreadable}`)]
    return (['not_before', 'not_after'] as const).map((member) => {
      const text = window[member]
      if (text == null) return false
      const limit = readTimeSpan(text)
      if (!limit) return refuse('unreadable_date', unreadable, member)
      const isInside = member === 'not_before' ? date.from >= limit.from : date.to <= limit.to
      return (
        !isInside &&
        refuse(
          'outside_execution_window',
          `the payment would be made outside of ${text}: change its date`,
          member,
        )
      )
    })
  },
}
const pispNames = ['legal_name', 'brand_name', 'domain_name'] as const

const unresolved = 'unresolved_constraint'
/** Each constraint by itself. One of an unknown type, one that cannot be read and one that is not disclosed all fail. */
const checkEach = <Schemas extends Record<string, z.ZodType>, Subject>(
  constraints: readonly { type?: string | null | undefined }[],
  schemas: Schemas,
  checks: Checks<Schemas, Subject>,
  subject: Subject,
  facts: PaymentFacts,
): Violation[] =>
  constraints.flatMap((constraint, i) => {
    const path = ['constraints', i]
    const refuse: Refuse = (code, text, member) => {
      const field = toFieldPath(member === undefined ? path : [...path, member])
      return { code, error: unresolved, field, message: `${field}: ${text}` }
    }
    const { type } = constraint
    const schema = type != null && Object.hasOwn(schemas, type) ? schemas[type] : undefined
    if (type == null || schema === undefined) {
      const what =
        type == null
          ? 'is not disclosed or has no type'
          : `has the unknown type ${JSON.stringify(type.slice(0, 100))}`
      return [refuse('unknown_constraint', `this constraint ${what}: ask the person to approve the purchase`)]
    }
    const parsed = parseBy(schema, constraint, { error: unresolved, path })
    if (!parsed.ok) return parsed.violations
    const check = checks[type] as (typeof checks)[keyof Schemas]
    return check(parsed.value as never, subject, refuse, facts).filter((found) => found !== false)
  })

/** A violation for each type that the constraints lack and `reason` demands. */
const requireTypes = (
  constraints: readonly { type?: string | null | undefined }[],
  types: readonly string[],
  reason: string,
): Violation[] =>
  types
    .filter((type) => !constraints.some((constraint) => constraint.type === type))
    .map((type) => {
      const text = `has no ${type}, which ${reason}: ask the person for a mandate that has one`
      return createViolation('missing_constraint', 'constraints', text, unresolved)
    })

/** Claims of SD-JWT VC and of the open mandate itself; all others are presets. */
const ownClaims = new Set(
  'vct constraints cnf iss sub aud nonce iat nbf exp jti status _sd _sd_alg sd_hash issuer_jwt_hash'.split(
    ' ',
  ),
)

/** A violation for every value of the open mandate that the closed one lacks or changes (agent_authorization.md, rule 2). */
const checkPresets = (open: Record<string, unknown>, closed: Record<string, unknown>): Violation[] =>
  Object.entries(open)
    .filter(([name, preset]) => preset != null && !ownClaims.has(name))
    .filter(([name, preset]) => !isSameJson(preset, closed[name]))
    .map(([name]) =>
      createViolation(
        'preset_changed',
        toFieldPath([name]),
        'is not the value that the open mandate presets: send it unchanged',
      ),
    )

/**
 * All violations of a checkout against its open mandate. List entries that are not disclosed (`{"...": digest}`) allow nothing.
 * Source: checkout_mandate.md, "Constraints".
 */
export const checkCheckoutConstraints = (
  open: OpenCheckoutMandate,
  closed: Record<string, unknown>,
  checkout: Checkout,
): Violation[] => [
  ...requireTypes(open.constraints, ['checkout.line_items'], 'AP2 requires'),
  ...checkPresets(open, closed),
  ...checkEach(open.constraints, checkoutConstraintSchemas, checkoutChecks, checkout, { now: Number.NaN }),
]

/**
 * All violations of a payment against its open mandate; what cannot be decided is one. Without a recurrence or a budget it pays
 * once. Source: payment_mandate.md, "Payment Mandate Constraints"; docs/payments.md has the calendar rule.
 */
export const checkPaymentConstraints = (
  open: OpenPaymentMandate,
  closed: PaymentMandateV2,
  facts: PaymentFacts,
): Violation[] => {
  const { constraints } = open
  const has = (type: string) => constraints.some((constraint) => constraint.type === type)
  const isReused = facts.spent != null && facts.spent.uses !== 0
  const reuse: Violation[] =
    isReused && !has('payment.agent_recurrence') && !has('payment.budget')
      ? [
          {
            code: 'already_used',
            error: 'invalid_mandate',
            field: 'constraints',
            message: 'the open mandate was used, and allows no recurrence: get a new one',
          },
        ]
      : []
  return [
    ...requireTypes(constraints, ['payment.reference'], 'AP2 requires'),
    ...(has('payment.agent_recurrence')
      ? requireTypes(
          constraints,
          ['payment.amount_range', 'payment.budget'],
          'payment.agent_recurrence needs',
        )
      : []),
    ...reuse,
    ...checkPresets(open, closed),
    ...checkEach(constraints, paymentConstraintSchemas, paymentChecks, closed, facts),
  ]
}
