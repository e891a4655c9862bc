import { errorDraft, readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { nextOfPayment } from './next-of-payment.ts'
import { createRouteLookUp, purchaseSchema } from './purchase.ts'

const expiresInMs = 15 * 60_000

/**
 * Orders the payment: at a card provider with the token of the instrument, which the person is asked for and only the executor can
 * read, over A2A at the agent of the merchant.
 */
export default defineTool({
  name: 'initiate_payment',
  description: 'Orders an approved payment',
  kinds: ['step'],
  steps: ['answer_challenge', 'check_receipt'],
  input: purchaseSchema,
  reads: ['action_history'],
  writes: [],
  needs: ['payments'],
  async run(state, context) {
    const purchase = readCallInput(context)
    const { payment_id, provider_id, method_action } = purchase
    const { payments } = context
    const pay = async (by: Parameters<typeof payments.pay>[2]) =>
      context.checkpoint(
        nextOfPayment(purchase, await context.wait(payments.pay(payment_id, provider_id, by))),
      )
    if (method_action !== null) return pay({ findRoute: createRouteLookUp(state, purchase) })
    const token = await context.ask({
      question: 'Which card should be charged?',
      schema: { type: 'string', format: 'payment-token', minLength: 1, maxLength: 200 },
      options: [],
      expires_in_ms: expiresInMs,
      secret: true,
      payment_id,
    })
    if (token.kind === 'expired')
      return context.checkpoint(
        errorDraft('No card was named in time', 'No card was named in time. Nothing is paid; ask again.'),
      )
    return pay({ token: String(token.answer) })
  },
})
