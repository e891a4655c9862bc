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
  needs: ['payments'],
  async run(state, context) {
    const purchase = readCallInput(context)
    const { payment_id, method_action } = purchase
    const asked = context.payments.requestConsent(
      payment_id,
      async (blobs) => (await findPurchaseCart(state, purchase, blobs)).cart,
      async (blobs) => toChoice(purchase, await readMethodOf(state, purchase, blobs)),
    )
    const { status, message } = await context.wait(asked)
    if (status !== 'verified')
      return context.checkpoint(
        errorDraft(`The payment was not approved (${status})`, String(message ?? status)),
      )
    return context.checkpoint({
      summary: 'The user approved the payment',
      result: { ...toResult(purchase), text: String(message) },
      next: [method_action === null ? 'initiate_payment' : 'send_payment_mandate'],
    })
  },
})
