import { z } from 'zod'
import { readCallInput } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { MasonError } from '../../state/errors.ts'
import { maxCartIdChars } from './find-signed-carts.ts'
import { findPurchaseCart, toResult } from './purchase.ts'

/**
 * Begins a payment. Who is paid how much is in no argument: it is what the merchant signed. The steps that follow are fixed: the
 * person approves, the executor pays, and the receipt is checked.
 */
export default defineTool({
  name: 'create_payment_mandate',
  description:
    'Pays a cart that a merchant has signed. The user is asked to approve the exact cart first, so make one call only, for the ' +
    'cart that the user wants. Returns when the payment has ended.',
  kinds: ['call'],
  steps: ['request_user_authorization'],
  input: z.strictObject({
    cart_action: z
      .int()
      .min(1)
      .optional()
      .describe('The id of the action whose result has the signed cart; the latest one when left out'),
    cart_id: z.string().max(maxCartIdChars).optional().describe('Which cart, where the result has several'),
    method: z
      .string()
      .max(200)
      .optional()
      .describe('One of the payment methods of the cart; its first when left out'),
    provider: z.string().max(200).optional().describe('By whom to pay, where there are several'),
  }),
  reads: ['action_history'],
  writes: [],
  needs: ['payments', 'blobs'],
  isAvailable: async ({ payments }) => (await payments.listProviders()).length > 0,
  async run(state, { call, payments, blobs, checkpoint }) {
    const { cart_action: named = null, cart_id = null, method = null, provider } = readCallInput({ call })
    const providers = await payments.listProviders()
    const matching = providers.filter(({ name }) => provider === undefined || name === provider)
    const [chosen] = matching
    if (!chosen || matching.length > 1)
      throw new MasonError('invalid_request', 'it is not clear by whom to pay', {
        remedy: `name one of these as provider: ${providers.map(({ name }) => name).join(', ')}`,
      })
    const { cart, cart_action } = await findPurchaseCart(state, { cart_action: named, cart_id }, blobs)
    const purchase = {
      ...{ payment_id: payments.newId(), cart_action, cart_id: cart.id, method, provider_id: chosen.id },
    }
    const { total, payee } = await payments.draft(cart, purchase)
    return checkpoint({
      summary: `Prepared the payment of ${total} to ${payee}`.slice(0, 200),
      result: { ...toResult(purchase), text: `The payment of ${total} to ${payee} waits for approval.` },
      next: ['request_user_authorization'],
    })
  },
})
