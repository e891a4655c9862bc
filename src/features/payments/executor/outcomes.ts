import type { PaymentOutcome } from '../ledger/payment-queries.ts'
import { formatMoney, type Money } from '../mandates/money.ts'
import type { ProviderAnswer } from '../providers/provider.ts'
import type { Refusal } from './verify-order.ts'

/** The messages of a payment for a person: what happened, and what to do. */

/** Who is paid how much. */
export type Charge = { payment_id: string; amount: Money; payee: string }

const show = ({ amount, payee }: Charge): string =>
  `${formatMoney(amount)} ${amount.currency} to ${payee.slice(0, 200)}`

/** A mandate that is refused: no money moves. */
export const toRefusedOutcome = (payment_id: string, { code, violations }: Refusal): PaymentOutcome => ({
  payment_id,
  status: 'declined',
  code,
  message: `The payment was refused and no money was taken: ${violations
    .slice(0, 3)
    .map(({ message }) => message)
    .join('; ')}.`,
})

/** An order that was canceled in time. */
export const toReleasedOutcome = (payment_id: string): PaymentOutcome => ({
  payment_id,
  status: 'released',
  message: 'The payment was canceled before it was sent. No money was taken.',
})

/** It is not known whether the provider acted. */
export const toUnknownOutcome = (charge: Charge, reason: string): PaymentOutcome => ({
  payment_id: charge.payment_id,
  status: 'unknown',
  code: 'payment_unknown',
  message: `It is not known whether the payment of ${show(charge)} was made (${reason}). Do not pay again: an operator finds out and settles it.`,
})

/** What an answer of a provider means to a person; null while there is nothing to say. */
export const toAnswerOutcome = (charge: Charge, answer: ProviderAnswer): PaymentOutcome | null => {
  const { payment_id } = charge
  switch (answer.status) {
    case 'succeeded':
      return { payment_id, status: 'succeeded', message: `Paid ${show(charge)}.` }
    case 'authorized':
      return {
        payment_id,
        status: 'authorized',
        message: `The payment of ${show(charge)} is authorized and not yet captured.`,
      }
    case 'declined':
      return {
        payment_id,
        status: 'declined',
        code: 'payment_declined',
        message: `The payment of ${show(charge)} was declined: ${answer.reason.slice(0, 500)}. No money was taken; to pay in another way, sign a new mandate.`,
      }
    case 'voided':
      return {
        payment_id,
        status: 'released',
        message: `The payment of ${show(charge)} was voided. No money was taken.`,
      }
    case 'challenge':
      return { payment_id, status: 'challenge', message: answer.challenge.text, challenge: answer.challenge }
    case 'refunded':
    case 'pending':
      return null
  }
}
