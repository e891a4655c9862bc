import { readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { MasonError } from '../../../state/errors.ts'
import { nextOfPayment } from './next-of-payment.ts'
import { purchaseSchema, readMethodOf, toResult } from './purchase.ts'

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
  needs: ['payments', 'blobs'],
  async run(state, context) {
    const purchase = readCallInput(context)
    const { payment_id, provider_id } = purchase
    const method = await readMethodOf(state, purchase, context.blobs)
    if (!method) throw new MasonError('internal', `payment ${payment_id} goes over no agent`)
    const outcome = await context.wait(context.payments.pay(payment_id, provider_id, { route: method.route }))
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
