import { z } from 'zod'
import { readCallInput, resultDraft } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'

const receiptTexts = {
  verified: 'Its receipt is signed and was checked.',
  invalid: 'Its receipt cannot be verified: tell an operator.',
}

/** Says what became of a payment, by the ledger and its signed receipt. The call is answered with it. */
export default defineTool({
  name: 'check_receipt',
  description: 'Checks the receipt of a payment',
  kinds: ['step'],
  input: z.object({ payment_id: z.string() }),
  reads: [],
  writes: [],
  needs: ['payments'],
  async run(_state, context) {
    const { payment_id } = readCallInput(context)
    const { status, message, code, receipt } = await context.payments.readResult(payment_id)
    const isPaid = status === 'succeeded' && receipt !== 'invalid'
    const isOpen = status === 'sent' || status === 'reserved' || status === 'ordered'
    const text = [
      `Payment ${payment_id} is ${status}${code === null ? '' : ` (${code})`}.`,
      ...(message === '' ? [] : [message]),
      ...(isOpen ? ['It may still be made. Do not pay again.'] : []),
      ...(receipt === null ? [] : [receiptTexts[receipt]]),
    ].join(' ')
    const facts = { payment_id, status, receipt, ...(code !== null && { code }) }
    return context.checkpoint(
      resultDraft(`The payment has the status ${status}`, text, {
        ...facts,
        ...(!isPaid && { is_error: true }),
      }),
    )
  },
})
