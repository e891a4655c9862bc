import { errorDraft, readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { purchaseSchema, readMethodOf, toResult } from './purchase.ts'

/** Has the executor show the approved mandates to the credentials provider, whose token the merchant will use. No money moves. */
export default defineTool({
  name: 'send_payment_mandate',
  description: 'Sends an approved payment mandate to the credentials provider',
  kinds: ['step'],
  steps: ['initiate_payment'],
  input: purchaseSchema,
  reads: ['action_history'],
  writes: [],
  needs: ['payments', 'blobs'],
  async run(state, context) {
    const purchase = readCallInput(context)
    const method = await readMethodOf(state, purchase, context.blobs)
    const { payment_id, provider_id } = purchase
    if (method) {
      const presented = context.payments.present(payment_id, provider_id, method.route)
      const { status, message } = await context.wait(presented)
      if (status !== 'presented')
        return context.checkpoint(
          errorDraft('The credentials provider refused the payment', String(message ?? status)),
        )
    }
    return context.checkpoint({
      summary: 'Sent the payment mandate to the credentials provider',
      result: { ...toResult(purchase), text: 'The credentials provider has the payment mandate.' },
      next: ['initiate_payment'],
    })
  },
})
