import { errorDraft, readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { nextOfPayment } from './next-of-payment.ts'
import { purchaseSchema } from './purchase.ts'

const expiresInMs = 15 * 60_000

/** Asks for the token of the instrument, which only the executor can read, and orders the payment. */
export default defineTool({
  name: 'initiate_payment',
  description: 'Orders an approved payment',
  kinds: ['step'],
  steps: ['answer_challenge', 'check_receipt'],
  input: purchaseSchema,
  reads: [],
  writes: [],
  needs: ['payments'],
  async run(_state, context) {
    const purchase = readCallInput(context)
    const { payment_id, provider_id } = purchase
    const token = await context.ask({
      question: 'Which card or account is to be charged? Send the payment token of its provider.',
      schema: { type: 'string', format: 'payment-token', minLength: 1, maxLength: 200 },
      options: [],
      expires_in_ms: expiresInMs,
      secret: true,
    })
    if (token.kind === 'expired')
      return context.checkpoint(
        errorDraft(
          'No payment token came in time',
          'No payment token came in time. Nothing is paid; ask again.',
        ),
      )
    const outcome = await context.wait(context.payments.pay(payment_id, provider_id, String(token.answer)))
    return context.checkpoint(nextOfPayment(purchase, outcome))
  },
})
