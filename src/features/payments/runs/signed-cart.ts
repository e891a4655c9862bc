import { refuse, refuseRequest } from '../consent/content.ts'
import { buildPaymentMandateContents } from '../mandates/v1/build.ts'
import { cartMandateSchema } from '../mandates/v1/types.ts'
import { buildCheckoutPayment } from '../mandates/v2/checkout-payment.ts'
import { readBy } from '../mandates/violations.ts'
import type { PaymentChoice, SignedCart, UnsignedPayment } from '../ports/run-payments.ref.ts'

const chooseMethod = (methods: readonly string[], method: string | null): string => {
  const chosen = method === null ? methods[0] : methods.find((one) => one === method)
  return (
    chosen ??
    refuse(`the cart cannot be paid by "${method}"`, `choose one of its methods: ${methods.join(', ')}`)
  )
}

const payCart = (
  { text }: SignedCart,
  { payment_id, method, alias, token }: PaymentChoice,
): UnsignedPayment => {
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
      ...(token && { details: { token } }),
      ...(shipping_address && { shipping_address }),
    },
    merchant_agent: merchant_name,
  })
  return { version: '0.1', cart: text, payment: raw, ...(alias && { instrument: alias }) }
}

const payCheckout = ({ text }: SignedCart, { method, alias }: PaymentChoice): UnsignedPayment => {
  // a checkout names no methods, and what a model writes is neither signed nor shown to who signs
  const type = chooseMethod(['card'], method)
  const instrument = alias === undefined ? { id: type, type } : { id: alias, type, description: alias }
  return { version: '0.2', checkout: text, payment: buildCheckoutPayment(text, instrument) }
}

/**
 * The payment mandate of a signed cart, for the person to sign: payee, amount and currency are the merchant's. The same each time.
 * Throws `invalid_request` with why there is none.
 */
export const createPaymentMandate = (cart: SignedCart, choice: PaymentChoice): UnsignedPayment =>
  cart.version === '0.1' ? payCart(cart, choice) : payCheckout(cart, choice)
