import type { PaymentOutcome } from '../ledger/payment-queries.ts'
import type { ApprovedOrder, PaymentProvider } from '../providers/provider.ts'
import { toAnswerOutcome } from './outcomes.ts'
import type { Check } from './verify-order.ts'
import type { TakenOrder } from './work-queue.ts'

/** A credentials provider that gave no answer is asked so often; then the order is declined. */
const maxTakes = 5

/** What came of showing the mandates: a credential where one was given, or why there is none. */
type Shown = { credential: string | null } | { reason: string }

/**
 * Shows the mandates of an order that was verified to the credentials provider of its route. Null: no one is shown them, or they were
 * closed by the executor, which reserves first. No money moves: after a broken connection it is repeated, under the same id.
 */
export const showMandates = async (
  provider: PaymentProvider,
  { order_id, open_mandate_id, takes }: TakenOrder,
  { request, payment }: ApprovedOrder,
  signal: AbortSignal,
): Promise<Shown | null> => {
  if (!provider.present || open_mandate_id !== null) return null
  try {
    return await provider.present(request, payment.checkout.hash, order_id, signal)
  } catch (error) {
    if (takes < maxTakes) throw error
    return { reason: 'the credentials provider does not answer' }
  }
}

/** A credentials provider that refused: nothing was reserved, and the merchant has not heard of it. */
export const toUnshownOutcome = (
  { payment_id }: TakenOrder,
  { payment: { amount, payee } }: ApprovedOrder,
  reason: string,
): PaymentOutcome =>
  toAnswerOutcome(
    { payment_id, amount, payee: payee.name },
    { status: 'declined', provider_ref: null, reason },
  ) as PaymentOutcome

/** For the trail: who was shown the mandates. */
export const toShownCheck = ({ request }: ApprovedOrder): Check => ({
  check: 'shown to the credentials provider',
  value: request.route?.credentials_agent ?? '',
})
