import { z } from 'zod'
import { readCallInput } from '../../../graph/call-drafts.ts'
import { defineTool } from '../../../graph/definitions.ts'
import { MasonError } from '../../../state/errors.ts'
import { chooseProvider } from './choose-provider.ts'
import { maxCartIdChars } from './find-signed-carts.ts'
import { findMethod, findPurchaseCart, toResult } from './purchase.ts'

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
    const payment_id = payments.newId()
    const providers = await payments.listProviders()
    const searched = { cart_action: named, cart_id }
    const { cart, cart_action, checked } = await findPurchaseCart(state, searched, blobs, (one) =>
      payments.draft(one, { payment_id, method }),
    )
    const hasAgents = providers.some(({ kind }) => kind === 'agent')
    const chosenMethod = hasAgents
      ? await findMethod(state, { cart_action, cart_id: cart.id, method_action: null }, blobs)
      : null
    if (chosenMethod && !chosenMethod.token && cart.version === '0.1')
      throw new MasonError('invalid_request', 'there is no token of the chosen payment method', {
        remedy: 'get it first: get_payment_credential_token',
      })
    const provider_id = await chooseProvider(payments, provider, chosenMethod ? 'agent' : 'card')
    const purchase = {
      payment_id,
      cart_action,
      cart_id: cart.id,
      method,
      provider_id,
      method_action: chosenMethod?.id ?? null,
    }
    const { total, payee } = checked
    return checkpoint({
      summary: `Prepared the payment of ${total} to ${payee}`.slice(0, 200),
      result: { ...toResult(purchase), text: `The payment of ${total} to ${payee} waits for approval.` },
      next: ['request_user_authorization'],
    })
  },
})
