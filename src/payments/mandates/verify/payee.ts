import { isObject } from '../tokens/encoding.ts'
import type { Checkout, PaymentMandateV2 } from '../v2/types.ts'
import { createViolation, type Violation } from '../violations.ts'

/** The origin of an address; other texts are themselves. */
const toOrigin = (address: string | null | undefined): string | null => {
  if (!address) return null
  return URL.canParse(address) ? new URL(address).origin : address
}

/** What a checkout says beside its types: UCP's totals, and whom it names. `issuer` is whose trusted key signed it. */
export const checkPayee = (
  checkout: Checkout,
  { payee, payment_amount: paid }: PaymentMandateV2,
  issuer: string,
): Violation[] => {
  const { merchant, currency } = checkout
  const violations: Violation[] = []
  if (currency != null && currency !== paid.currency)
    violations.push(
      createViolation('amount_mismatch', 'payment_amount.currency', `is not ${currency}, as in the checkout`),
    )
  const totals = Array.isArray(checkout.totals) ? checkout.totals : []
  const total = totals.find((one) => isObject(one) && one.type === 'total') as
    | { amount?: unknown }
    | undefined
  if (total && total.amount !== paid.amount)
    violations.push(
      createViolation(
        'amount_mismatch',
        'payment_amount.amount',
        'is not the total of the checkout: pay that total',
      ),
    )
  const isNamed =
    !merchant || (merchant.id && payee.id ? merchant.id === payee.id : merchant.name === payee.name)
  const isIssuer = issuer === payee.id || toOrigin(issuer) === toOrigin(payee.website)
  if (!isNamed || !isIssuer)
    violations.push(
      createViolation(
        'payee_not_bound',
        'payee',
        `is not who signed the checkout, ${issuer}: pay the merchant that sells it`,
      ),
    )
  return violations
}
