import { readTimeSpan } from '../calendar.ts'
import type { MandatedPayment } from '../model.ts'
import { formatMoney, type Money } from '../money.ts'
import { createViolation, type Violation } from '../violations.ts'
import type { CartContents, CartMandate, PaymentMandateV1 } from './types.ts'

const show = (money: Money): string => `${formatMoney(money)} ${money.currency}`

/**
 * A violation where the items of a cart do not add up to its total, or have another currency. The total is authoritative: carts of
 * the samples differ (AP2.md 1.5, row 10), so that whether this is a warning or a refusal is the caller's policy.
 */
export const checkCartSum = ({ payment_request: { details } }: CartContents): Violation[] => {
  const { currency, minor } = details.total.amount
  const sum = details.display_items.reduce((all, { amount }) => all + BigInt(amount.minor), 0n)
  if (sum === BigInt(minor) && details.display_items.every(({ amount }) => amount.currency === currency))
    return []
  const text = `is ${show(details.total.amount)}, which is not the sum of display_items: ask the merchant for a new cart`
  return [createViolation('sum_mismatch', 'contents.payment_request.details.total.amount', text)]
}

/**
 * The payment of a cart, or every difference between the two: nothing in AP2 0.1 but their own fields binds them (AP2 #211).
 * `cartHash` is that of the cart mandate as it was received. Signatures are checked elsewhere.
 */
export const joinCartAndPayment = (
  { contents }: CartMandate,
  { payment_mandate_contents: mandate }: PaymentMandateV1,
  cartHash: string,
): { ok: true; value: MandatedPayment } | { ok: false; violations: Violation[] } => {
  const { details, method_data } = contents.payment_request
  const { payment_response: response, payment_details_total: paid } = mandate
  const { amount } = details.total
  const methods = method_data.map(({ supported_methods }) => supported_methods)
  const isSameAmount = paid.amount.currency === amount.currency && paid.amount.minor === amount.minor
  const differences: [boolean, string, string, string][] = [
    [mandate.payment_details_id === details.id, 'payment_details_id', 'checkout_mismatch', details.id],
    [response.request_id === details.id, 'payment_response.request_id', 'checkout_mismatch', details.id],
    [isSameAmount, 'payment_details_total.amount', 'amount_mismatch', show(amount)],
    [
      mandate.merchant_agent === contents.merchant_name,
      'merchant_agent',
      'payee_mismatch',
      contents.merchant_name,
    ],
    [
      methods.includes(response.method_name),
      'payment_response.method_name',
      'method_not_allowed',
      methods.join(' or '),
    ],
  ]
  const violations = differences
    .filter(([isSame]) => !isSame)
    .map(([, member, code, expected]): Violation => {
      const text = `is not ${expected.slice(0, 200)}, as the cart has it: have the person sign this cart`
      return createViolation(code, `payment_mandate_contents.${member}`, text)
    })
  if (violations.length > 0) return { ok: false, violations }
  const { payer_name = null, payer_email = null, payer_phone = null } = response
  return {
    ok: true,
    value: {
      version: '0.1',
      amount,
      payee: { id: null, name: contents.merchant_name, website: null },
      payer: { name: payer_name, email: payer_email, phone: payer_phone },
      instrument: { type: response.method_name, id: null, details: response.details ?? null },
      checkout: { id: details.id, cart_id: contents.id, hash: cartHash },
      expiresAt: Math.floor((readTimeSpan(contents.cart_expiry)?.to ?? 0) / 1000),
      executionDate: null,
    },
  }
}
