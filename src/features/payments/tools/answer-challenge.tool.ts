import { z } from 'zod'
import { readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { nextOfPayment } from './next-of-payment.ts'
import { purchaseSchema } from './purchase.ts'

const expiresInMs = 10 * 60_000

/** Passes the person's answer to the bank on: a one-time code, which only the executor can read. Again after a wrong one. */
export default defineTool({
  name: 'answer_challenge',
  description: 'Answers what the bank asks the user for',
  kinds: ['step'],
  steps: ['answer_challenge', 'check_receipt'],
  input: z.object({ ...purchaseSchema.shape, challenge: purchaseSchema.shape.challenge.unwrap() }),
  reads: [],
  writes: [],
  needs: ['payments'],
  async run(_state, context) {
    const purchase = readCallInput(context)
    const { type, text } = purchase.challenge
    const format = type === 'otp' ? { format: 'one-time-code' } : {}
    const code = await context.ask({
      question: text,
      schema: { type: 'string', minLength: 1, maxLength: 200, ...format },
      options: [],
      expires_in_ms: expiresInMs,
      secret: true,
      payment_id: purchase.payment_id,
    })
    if (code.kind === 'expired')
      return context.checkpoint({
        summary: 'No answer to the bank came in time',
        result: { payment_id: purchase.payment_id, text: 'No answer to the bank came in time.' },
        next: ['check_receipt'],
      })
    const outcome = await context.wait(context.payments.answer(purchase.payment_id, String(code.answer)))
    return context.checkpoint(nextOfPayment(purchase, outcome))
  },
})
