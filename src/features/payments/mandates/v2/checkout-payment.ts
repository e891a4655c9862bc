import { MasonError } from '../../../../state/errors.ts'
import { hashText } from '../tokens/encoding.ts'
import { parseJws } from '../tokens/jws.ts'
import { attempt } from '../tokens/token-error.ts'
import { parseBy, type Violation } from '../violations.ts'
import { buildPaymentMandate } from './build.ts'
import { readTotal } from './total.ts'
import { checkoutSchema } from './types.ts'

const refuse = (message: string, remedy: string, violations: Violation[] = []): never => {
  throw new MasonError('invalid_request', message, { remedy, detail: { violations } })
}

/**
 * The closed payment mandate of a checkout, as JSON text: payee, amount and currency are the merchant's. Nothing is verified here.
 * Throws `invalid_request` with why there is none.
 */
export const buildCheckoutPayment = (token: string, instrument: { id: string; type: string }): string => {
  const violations: Violation[] = []
  const claims = attempt(violations, () => parseJws(token, 'checkout'))?.payload
  const checkout = parseBy(checkoutSchema, claims ?? {}, { path: ['checkout'] })
  if (!claims || !checkout.ok) {
    const found = [...violations, ...(checkout.ok ? [] : checkout.violations)]
    return refuse('the checkout cannot be read', found.map(({ message }) => message).join('; '), found)
  }
  const { merchant } = checkout.value
  const total = readTotal(checkout.value)
  if (!merchant?.id || !merchant.name || typeof total === 'string')
    return refuse(
      `the checkout does not say who is paid how much${typeof total === 'string' ? `: it ${total}` : ''}`,
      'ask the merchant for a checkout with merchant, currency and one total',
    )
  return buildPaymentMandate({
    vct: 'mandate.payment.1',
    transaction_id: hashText(token),
    payee: { ...merchant, id: merchant.id, name: merchant.name },
    payment_amount: { amount: total.minor, currency: total.currency },
    payment_instrument: instrument,
  }).raw
}
