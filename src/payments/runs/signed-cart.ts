import { MasonError } from '../../state/errors.ts'
import type { PaymentChoice, SignedCart, UnsignedPayment } from '../../state/ports/payments.ts'
import { refuseRequest } from '../consent/content.ts'
import { hashText, isObject } from '../mandates/tokens/encoding.ts'
import { parseJws } from '../mandates/tokens/jws.ts'
import { attempt } from '../mandates/tokens/token-error.ts'
import { buildPaymentMandateContents } from '../mandates/v1/build.ts'
import { cartMandateSchema } from '../mandates/v1/types.ts'
import { buildPaymentMandate } from '../mandates/v2/build.ts'
import { checkoutSchema } from '../mandates/v2/types.ts'
import { parseBy, readBy, type Violation } from '../mandates/violations.ts'

const refuse = (message: string, remedy: string): never => {
  throw new MasonError('invalid_request', message, { remedy })
}

const chooseMethod = (methods: readonly string[], method: string | null): string => {
  const chosen = method === null ? methods[0] : methods.find((one) => one === method)
  return (
    chosen ??
    refuse(`the cart cannot be paid by "${method}"`, `choose one of its methods: ${methods.join(', ')}`)
  )
}

const payCart = ({ text }: SignedCart, { payment_id, method }: PaymentChoice): UnsignedPayment => {
  const cart = readBy(cartMandateSchema, text)
  if (!cart.ok) return refuseRequest(cart.violations)
  const { payment_request, merchant_name } = cart.value.contents
  const { details, method_data, shipping_address } = payment_request
  const methods = method_data.map(({ supported_methods }) => supported_methods)
  const { raw } = buildPaymentMandateContents({
    payment_mandate_id: payment_id,
    payment_details_id: details.id,
    payment_details_total: details.total,
    payment_response: {
      request_id: details.id,
      method_name: chooseMethod(methods, method),
      ...(shipping_address && { shipping_address }),
    },
    merchant_agent: merchant_name,
  })
  return { version: '0.1', cart: text, payment: raw }
}

const payCheckout = ({ text }: SignedCart, { method }: PaymentChoice): UnsignedPayment => {
  const violations: Violation[] = []
  const claims = attempt(violations, () => parseJws(text, 'checkout'))
  if (!claims) return refuseRequest(violations)
  const checkout = parseBy(checkoutSchema, claims.payload, { path: ['checkout'] })
  if (!checkout.ok) return refuseRequest(checkout.violations)
  const { merchant, currency, totals } = checkout.value
  const total = (Array.isArray(totals) ? totals : []).find((one) => isObject(one) && one.type === 'total')
  if (!merchant?.id || !merchant.name || !currency || !Number.isSafeInteger(total?.amount))
    return refuse(
      'the checkout does not say who is paid how much',
      'ask the merchant for a checkout with merchant, currency and a total',
    )
  // a checkout names no methods, and what a model writes is neither signed nor shown to who signs
  const instrument = chooseMethod(['card'], method)
  const { raw } = buildPaymentMandate({
    vct: 'mandate.payment.1',
    transaction_id: hashText(text),
    payee: { ...merchant, id: merchant.id, name: merchant.name },
    payment_amount: { amount: Number(total.amount), currency },
    payment_instrument: { id: instrument, type: instrument },
  })
  return { version: '0.2', checkout: text, payment: raw }
}

/**
 * The payment mandate of a signed cart, for the person to sign: payee, amount and currency are the merchant's. The same each time.
 * Throws `invalid_request` with why there is none.
 */
export const createPaymentMandate = (cart: SignedCart, choice: PaymentChoice): UnsignedPayment =>
  cart.version === '0.1' ? payCart(cart, choice) : payCheckout(cart, choice)
