import { z } from 'zod'
import { readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { MasonError } from '../../../state/errors.ts'
import { maxCartIdChars } from './find-signed-carts.ts'
import { findPurchaseCart, toResult } from './purchase.ts'

/** Begins a payment under an open mandate. Who is paid how much is in no argument: it is what the merchant signed. */
export default defineTool({
  name: 'use_open_mandate',
  description:
    'Pays a checkout that a merchant has signed within limits that the user has signed before, without asking them. Where the ' +
    'limits do not allow it, the user is asked to approve it. Returns when the payment has ended.',
  kinds: ['call'],
  steps: ['pay_by_open_mandate'],
  input: z.strictObject({
    mandate_id: z.string().max(100).optional().describe('Which open mandate, where the user has several'),
    cart_action: z
      .int()
      .min(1)
      .optional()
      .describe('The id of the action whose result has the signed checkout; the latest one when left out'),
    cart_id: z
      .string()
      .max(maxCartIdChars)
      .optional()
      .describe('Which checkout, where the result has several'),
  }),
  reads: ['action_history'],
  writes: [],
  needs: ['payments', 'mandates', 'blobs'],
  isAvailable: async ({ mandates }) => (await mandates.listUsable()).length > 0,
  async run(state, { call, payments, mandates, blobs, checkpoint }) {
    const { mandate_id, cart_action: action = null, cart_id = null } = readCallInput({ call })
    const mandate = mandates.choose(await mandates.listUsable(), mandate_id)
    const { cart, cart_action } = await findPurchaseCart(state, { cart_action: action, cart_id }, blobs)
    if (cart.version !== '0.2')
      throw new MasonError('invalid_request', 'a cart of AP2 0.1 cannot be paid by an open mandate', {
        remedy: 'ask the merchant for a checkout of AP2 0.2, or pay with create_payment_mandate',
      })
    const { provider_id, wallet, instrument: alias } = mandate
    const purchase = {
      payment_id: payments.newId(),
      cart_action,
      cart_id: cart.id,
      method: null,
      provider_id,
    }
    return checkpoint({
      summary: 'Prepared a payment under an open mandate',
      result: {
        ...toResult(purchase),
        mandate_id: mandate.id,
        // what pays over A2A, also where the user is asked: `findMethod` reads it
        ...(wallet && { credentials_agent: wallet.agent, user_email: wallet.user_email, alias }),
        text: `The checkout is paid under the open mandate ${mandate.id}.`,
      },
      next: ['pay_by_open_mandate'],
    })
  },
})
