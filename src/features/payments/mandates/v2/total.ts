import { type Money, parseMinor } from '../money.ts'
import { isObject } from '../tokens/encoding.ts'
import { createViolation, type Violation } from '../violations.ts'
import type { Checkout, PaymentMandateV2 } from './types.ts'

/** The one total of a checkout, in its currency (UCP); a text says why it has none. Of two totals, readers could take either. */
export const readTotal = ({ currency, totals }: Checkout): Money | string => {
  const listed = Array.isArray(totals) ? totals.filter((one) => isObject(one) && one.type === 'total') : []
  if (listed.length !== 1)
    return `has ${listed.length} totals: ask the merchant for a checkout with exactly one`
  const money = parseMinor(listed[0].amount, currency ?? '')
  return 'code' in money ? `has a total that cannot be read (${money.message})` : money
}

/** Whether what is paid is the total that the merchant signed, to the digit and the currency. */
export const checkTotal = (
  checkout: Checkout,
  { payment_amount: paid }: Pick<PaymentMandateV2, 'payment_amount'>,
): Violation[] => {
  const total = readTotal(checkout)
  if (typeof total === 'string') return [createViolation('no_total', 'checkout.totals', total)]
  if (total.currency !== paid.currency)
    return [
      createViolation(
        'amount_mismatch',
        'payment_amount.currency',
        `is not ${total.currency}, as in the checkout`,
      ),
    ]
  if (total.minor !== paid.amount)
    return [
      createViolation(
        'amount_mismatch',
        'payment_amount.amount',
        'is not the total of the checkout: pay that total',
      ),
    ]
  return []
}
