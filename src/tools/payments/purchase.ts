import { z } from 'zod'
import { readPlannedCalls } from '../../state/calls.ts'
import { MasonError } from '../../state/errors.ts'
import type { Blobs } from '../../state/ports/blobs.ts'
import type { PaymentChoice, SignedCart } from '../../state/ports/payments.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { findSignedCarts } from './find-signed-carts.ts'

/** What the steps of a payment pass on: ids alone. The cart is in the result of the action `cart_action`. */
export const purchaseSchema = z.object({
  payment_id: z.string(),
  cart_action: z.int(),
  cart_id: z.string(),
  method: z.string().nullable(),
  provider_id: z.string(),
  /** Of the provider's question to the person, where it has one. */
  challenge: z.object({ type: z.enum(['otp', 'redirect']), text: z.string() }).optional(),
})
/** See `purchaseSchema`. */
export type Purchase = z.infer<typeof purchaseSchema>

/** What a step hands to the next one. */
export const toResult = ({ payment_id, cart_action, cart_id, method, provider_id }: Purchase) => ({
  ...{ payment_id, cart_action, cart_id, method, provider_id },
})

/** Actions that are looked through for a signed cart. */
const maxActions = 200

/**
 * The cart that a payment is for, and the id of its action: without `cart_action` the latest one that has a signed cart. Throws
 * `invalid_request` where there is no such cart, naming those that there are.
 */
export const findPurchaseCart = async (
  { action_history }: Pick<RuntimeState, 'action_history'>,
  { cart_action, cart_id }: { cart_action: number | null; cart_id: string | null },
  blobs: Pick<Blobs, 'read'>,
): Promise<{ cart: SignedCart; cart_action: number }> => {
  // what a model wrote into a call is no offer of a merchant
  const actions = action_history
    .flat()
    .reverse()
    .filter((one) => readPlannedCalls(one).length === 0)
  const known = new Set<string>()
  const searched =
    cart_action === null ? actions.slice(0, maxActions) : actions.filter(({ id }) => id === cart_action)
  for (const action of searched) {
    const carts = await findSignedCarts(action, blobs)
    for (const { id } of carts) known.add(`"${id.slice(0, 100)}"`)
    const matching = carts.filter(({ id }) => cart_id === null || id === cart_id)
    const [cart] = matching
    if (cart && matching.length === 1) return { cart, cart_action: action.id }
    if (matching.length > 1) break
  }
  const where = cart_action === null ? 'no result' : `the result of action ${cart_action}`
  if (known.size === 0)
    throw new MasonError('invalid_request', `${where} has ${cart_action === null ? 'a' : 'no'} signed cart`, {
      remedy: 'get the cart from the merchant, signed; only such a cart can be paid',
    })
  throw new MasonError('invalid_request', `there are these signed carts: ${[...known].join(', ')}`, {
    remedy: 'name one of them as cart_id',
  })
}

/** How the cart of a purchase is paid. */
export const toChoice = ({ payment_id, method }: Purchase): PaymentChoice => ({ payment_id, method })
