import type { ActionDraft } from '../../../state/checkpoint.ts'
import type { WaitOutcome } from '../../../state/ports/waits.ts'
import { type Purchase, purchaseSchema, toResult } from './purchase.ts'

/** Where a payment goes on: with what the bank asks the person for, or with its receipt. */
export const nextOfPayment = (purchase: Purchase, outcome: WaitOutcome): ActionDraft => {
  const text = String(outcome.message ?? outcome.status)
  const challenge = purchaseSchema.shape.challenge.safeParse(outcome.challenge)
  if (outcome.status === 'challenge' && challenge.data)
    return {
      summary: 'The bank asks the user to confirm the payment',
      result: { ...toResult(purchase), challenge: challenge.data, text },
      next: ['answer_challenge'],
    }
  return {
    summary: `The payment has the status ${outcome.status}`.slice(0, 200),
    result: { payment_id: purchase.payment_id, text },
    next: ['check_receipt'],
  }
}
