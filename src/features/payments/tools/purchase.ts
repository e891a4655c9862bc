import { z } from 'zod'
import { readWholeResult } from '../../../context/result-text.ts'
import { readPlannedCalls } from '../../../state/calls.ts'
import { isMasonError, MasonError } from '../../../state/errors.ts'
import type { Blobs } from '../../../state/ports/blobs.ts'
import type { RuntimeState } from '../../../state/runtime-state.ts'
import type { ReadonlyAction } from '../../../state/turn.ts'
import type { AgentRoute } from '../ports/agent-route.ts'
import type { LookUp, PaymentChoice, SignedCart } from '../ports/run-payments.ref.ts'
import { findSignedCarts } from './find-signed-carts.ts'

/** What the steps of a payment pass on: ids alone. The cart is in the result of the action `cart_action`. */
export const purchaseSchema = z.object({
  payment_id: z.string(),
  cart_action: z.int(),
  cart_id: z.string(),
  method: z.string().nullable(),
  provider_id: z.string(),
  /** Of a payment over A2A: the action whose result has the instrument that the person chose. */
  method_action: z.int().nullable().default(null),
  /** Of the provider's question to the person, where it has one. */
  challenge: z.object({ type: z.enum(['otp', 'redirect']), text: z.string() }).optional(),
})
/** See `purchaseSchema`. */
export type Purchase = z.infer<typeof purchaseSchema>

/** What a step hands to the next one. */
export const toResult = ({ challenge: _, method_action = null, ...ids }: z.input<typeof purchaseSchema>) => ({
  ...ids,
  ...(method_action !== null && { method_action }),
})

type History = Pick<RuntimeState, 'action_history'>
type Reader = Pick<Blobs, 'read'>

/** Actions that are looked through for a signed cart. */
const maxActions = 200

/** The latest first. What a model wrote into a call is no offer of a merchant. */
const listResults = ({ action_history }: History): ReadonlyAction[] =>
  action_history
    .flat()
    .reverse()
    .filter((one) => readPlannedCalls(one).length === 0)

/**
 * The cart that a payment is for, and the id of its action: without `cart_action` the latest one that has a signed cart which `check`
 * takes, so that a forged one of the same id is in no one's way; `checked` is what it made of it. Throws `invalid_request` where there is no such cart, naming those
 * that there are, and else as `check` did for the first.
 */
export const findPurchaseCart = async <Checked = undefined>(
  state: History,
  { cart_action, cart_id }: { cart_action: number | null; cart_id: string | null },
  blobs: Reader,
  check: (cart: SignedCart) => Promise<Checked> = async () => undefined as Checked,
): Promise<{ cart: SignedCart; cart_action: number; checked: Checked }> => {
  const actions = listResults(state)
  const known = new Set<string>()
  let refusal: MasonError | null = null
  const searched =
    cart_action === null ? actions.slice(0, maxActions) : actions.filter(({ id }) => id === cart_action)
  for (const action of searched) {
    const carts = await findSignedCarts(action, blobs)
    for (const { id } of carts) known.add(`"${id.slice(0, 100)}"`)
    const matching = carts.filter(({ id }) => cart_id === null || id === cart_id)
    const [cart] = matching
    if (matching.length > 1) break
    if (!cart) continue
    try {
      return { cart, cart_action: action.id, checked: await check(cart) }
    } catch (error) {
      if (!isMasonError(error, 'invalid_request')) throw error
      refusal ??= error
    }
  }
  if (refusal) throw refusal
  const where = cart_action === null ? 'no result' : `the result of action ${cart_action}`
  if (known.size === 0)
    throw new MasonError('invalid_request', `${where} has ${cart_action === null ? 'a' : 'no'} signed cart`, {
      remedy: 'get the cart from the merchant, signed; only such a cart can be paid',
    })
  throw new MasonError('invalid_request', `there are these signed carts: ${[...known].join(', ')}`, {
    remedy: 'name one of them as cart_id',
  })
}

const text = z.string().min(1).max(500)
/** What a tool that talks to merchants writes beside the signed cart. */
const soldSchema = z.object({
  agent: text,
  context_id: text.nullish(),
  risk_data: z.string().min(1).max(100_000).nullish(),
})
/** What a tool that talks to a credentials provider writes about the chosen instrument; AP2 0.1 has its token. */
const methodSchema = z.object({
  cart_id: z.string(),
  credentials_agent: text,
  alias: text,
  context_id: text.nullish(),
  user_email: text.nullish(),
  token: z.object({ value: text, url: text }).nullish(),
})
type Method = { id: number; route: AgentRoute; token?: { value: string; url: string } }

/**
 * Over which agents a cart goes, and the instrument that the person chose for it, of the action `method_action` or else the latest.
 * Null: it came over no agent. Throws `invalid_request` where no instrument is chosen.
 */
export const findMethod = async (
  state: History,
  { cart_action, cart_id, method_action }: Pick<Purchase, 'cart_action' | 'cart_id' | 'method_action'>,
  blobs: Reader,
): Promise<Method | null> => {
  const action = state.action_history.flat().find(({ id }) => id === cart_action)
  const sold = action && soldSchema.safeParse(await readWholeResult(action, blobs)).data
  if (!sold) return null
  const searched = listResults(state).filter(({ id }) => method_action === null || id === method_action)
  for (const one of searched.slice(0, maxActions)) {
    const method = methodSchema.safeParse(await readWholeResult(one, blobs)).data
    if (method?.cart_id !== cart_id) continue
    const { credentials_agent, alias, user_email = null, token } = method
    return {
      id: one.id,
      route: {
        agent: sold.agent,
        context_id: sold.context_id ?? null,
        risk_data: sold.risk_data ?? null,
        credentials_agent,
        credentials_context_id: method.context_id ?? null,
        alias,
        user_email,
      },
      ...(token && { token }),
    }
  }
  throw new MasonError('invalid_request', 'no payment method is chosen for this cart', {
    remedy: 'get the payment methods of the user, let them choose one, and get its payment token',
  })
}

/** How the cart of a purchase is paid. */
export const toChoice = ({ payment_id, method }: Purchase, chosen: Method | null): PaymentChoice => ({
  payment_id,
  method,
  ...(chosen && { alias: chosen.route.alias ?? '' }),
  ...(chosen?.token && { token: chosen.token }),
})

/** The agents that a purchase goes over, and its instrument; null: it goes to a card provider. */
export const readMethodOf = (state: History, purchase: Purchase, blobs: Reader): Promise<Method | null> =>
  purchase.method_action === null ? Promise.resolve(null) : findMethod(state, purchase, blobs)

/** Looks the agents up that a purchase goes over, which has a `method_action`. */
export const createRouteLookUp =
  (state: History, purchase: Purchase): LookUp<AgentRoute> =>
  async (blobs) => {
    const method = await readMethodOf(state, purchase, blobs)
    if (method) return method.route
    throw new MasonError('internal', `payment ${purchase.payment_id} goes over no agent`)
  }
