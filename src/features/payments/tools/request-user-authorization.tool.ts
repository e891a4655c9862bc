import { errorDraft, readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { findPurchaseCart, purchaseSchema, readMethodOf, toChoice, toResult } from './purchase.ts'

/** Waits until the person has approved the payment, by signing the bytes of cart and mandate, or has refused it. */
export default defineTool({
  name: 'request_user_authorization',
  description: 'Asks the user to approve a payment',
  kinds: ['step'],
  steps: ['send_payment_mandate', 'initiate_payment'],
  input: purchaseSchema,
  reads: ['action_history'],
  writes: [],
  needs: ['payments', 'blobs'],
  async run(state, context) {
    const purchase = readCallInput(context)
    const { cart } = await findPurchaseCart(state, purchase, context.blobs)
    const method = await readMethodOf(state, purchase, context.blobs)
    const asked = context.payments.requestConsent(cart, toChoice(purchase, method))
    const { status, message } = await context.wait(asked)
    if (status !== 'verified')
      return context.checkpoint(
        errorDraft(`The payment was not approved (${status})`, String(message ?? status)),
      )
    return context.checkpoint({
      summary: 'The user approved the payment',
      result: { ...toResult(purchase), text: String(message) },
      next: [method ? 'send_payment_mandate' : 'initiate_payment'],
    })
  },
})
