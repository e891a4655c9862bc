import { readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { nextOfPayment } from './next-of-payment.ts'
import { createRouteLookUp, purchaseSchema, toResult } from './purchase.ts'

/**
 * Has the executor pay over A2A: it shows the approved mandates to the credentials provider, whose token the merchant will use, and
 * sends them to the agent of the merchant.
 */
export default defineTool({
  name: 'send_payment_mandate',
  description: 'Sends an approved payment mandate to the credentials provider and the merchant',
  kinds: ['step'],
  steps: ['initiate_payment', 'answer_challenge', 'check_receipt'],
  input: purchaseSchema,
  reads: ['action_history'],
  writes: [],
  needs: ['payments'],
  async run(state, context) {
    const purchase = readCallInput(context)
    const { payment_id, provider_id } = purchase
    const by = { findRoute: createRouteLookUp(state, purchase) }
    const outcome = await context.wait(context.payments.pay(payment_id, provider_id, by))
    // of a run that waits since before this step paid too
    if (outcome.status === 'presented')
      return context.checkpoint({
        summary: 'Sent the payment mandate to the credentials provider',
        result: { ...toResult(purchase), text: String(outcome.message) },
        next: ['initiate_payment'],
      })
    return context.checkpoint(nextOfPayment(purchase, outcome))
  },
})
