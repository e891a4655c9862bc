import { z } from 'zod'
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

/** The cart that a payment is for. Throws `invalid_request` where the action has no such cart, naming those that it has. */
export const readPurchaseCart = async (
  state: Pick<RuntimeState, 'action_history'>,
  { cart_action, cart_id }: Pick<Purchase, 'cart_action'> & { cart_id: string | null },
  blobs: Pick<Blobs, 'read'>,
): Promise<SignedCart> => {
  const carts = (await findSignedCarts(state, cart_action, blobs)) ?? []
  const matching = carts.filter(({ id }) => cart_id === null || id === cart_id)
  const [cart] = matching
  if (cart && matching.length === 1) return cart
  const ids = carts.map(({ id }) => `"${id.slice(0, 100)}"`).join(', ')
  throw new MasonError(
    'invalid_request',
    carts.length === 0
      ? `the result of action ${cart_action} has no signed cart`
      : `the result of action ${cart_action} has these signed carts: ${ids}`,
    {
      remedy:
        carts.length === 0
          ? 'name the action that got the cart from the merchant, signed; only such a cart can be paid'
          : 'name one of them as cart_id',
    },
  )
}

/** How the cart of a purchase is paid. */
export const toChoice = ({ payment_id, method }: Purchase): PaymentChoice => ({ payment_id, method })
