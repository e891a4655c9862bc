import { z } from 'zod'
import { readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import type { Blobs } from '../../../state/ports/blobs.ts'
import { nextOfPayment } from './next-of-payment.ts'
import { findMethod, findPurchaseCart, purchaseSchema, toResult } from './purchase.ts'

/** Orders the payment and waits for it. Where the limits do not allow it, the person is asked, as for any other payment. */
export default defineTool({
  name: 'pay_by_open_mandate',
  description: 'Orders a payment under an open mandate',
  kinds: ['step'],
  steps: ['request_user_authorization', 'answer_challenge', 'check_receipt'],
  input: purchaseSchema.extend({ mandate_id: z.string(), alias: z.string().optional() }),
  reads: ['action_history'],
  writes: [],
  needs: ['payments', 'mandates', 'blobs'],
  async run(state, context) {
    const { mandate_id, alias, ...purchase } = readCallInput(context)
    const { payments, mandates, blobs } = context
    const readMethod = async (from: Pick<Blobs, 'read'>) =>
      alias === undefined ? null : findMethod(state, purchase, from)
    const outcome = await context.wait(
      mandates.pay(mandate_id, purchase.payment_id, async (from) => {
        const { cart } = await findPurchaseCart(state, purchase, from)
        return { checkout: cart.text, route: (await readMethod(from))?.route ?? null }
      }),
    )
    if (outcome.status !== 'declined' || outcome.code !== 'unresolved_constraint')
      return context.checkpoint(nextOfPayment(purchase, outcome))
    const method = await readMethod(blobs)
    const asked = { ...purchase, payment_id: payments.newId(), method_action: method?.id ?? null }
    return context.checkpoint({
      summary: 'The open mandate does not allow the payment: the user is asked',
      result: { ...toResult(asked), text: `${outcome.message} The user is asked to approve it.` },
      next: ['request_user_authorization'],
    })
  },
})
