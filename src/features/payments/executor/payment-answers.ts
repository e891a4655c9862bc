import { toDelayMs } from '../ledger/delays.ts'
import type { PaymentOutcome } from '../ledger/payment-queries.ts'
import { findAnswerError, type ProviderAnswer, toDoneStatus } from '../providers/provider.ts'
import type { PaymentOperation } from './operations.ts'
import { type Charge, toAnswerOutcome, toUnknownOutcome } from './outcomes.ts'
import type { PaymentChange } from './settlement.ts'
import type { ClaimedPayment } from './work-queue.ts'

/** A settlement without its receipt; `receives` says that it gets one. */
export type Decision = PaymentChange & { receives?: boolean }

/** Who is paid how much by a payment. */
const toCharge = ({ payment_id, currency, amount_minor, payee }: ClaimedPayment): Charge => ({
  payment_id,
  amount: { currency, minor: amount_minor },
  payee: payee.name,
})

/** A challenge waits for a person: it is looked at this often. */
const challengeDelayMs = 30_000

/** A person is asked for the answer of a challenge this often. */
export const maxAnswers = 3

/** A run waits so long for a payment that its provider calls pending. Then the person reads that it is unknown, and look-ups go on. */
const maxPendingMs = 15 * 60_000

/** The statuses of a payment whose end is open. */
const openStatuses = ['sent', 'unknown'] as const

/** It is not known what became of a payment: its reservation stays, and it is looked up again. */
export const decideUnknown = (
  payment: ClaimedPayment,
  reason: string,
  answer: unknown = null,
): Decision & { outcome: PaymentOutcome } => ({
  from: ['sent'],
  status: 'unknown',
  outcome: toUnknownOutcome(toCharge(payment), reason),
  endsWait: true,
  delayMs: toDelayMs(0),
  event: { kind: 'unknown', detail: { reason, ...(answer != null && { answer }) } },
})

/** It is not known what became of the answer of a person, and the provider cannot say. */
export const decideUnknownAnswer = (
  payment: ClaimedPayment,
  { operation_id }: PaymentOperation,
  reason: string,
): Decision => {
  const unknown = decideUnknown(payment, reason)
  const operation = { id: operation_id, status: 'done' as const, answer: { status: 'unknown', reason } }
  // a look-up of the payment itself may have come first
  return { ...unknown, from: openStatuses, operation, order: { outcome: unknown.outcome } }
}

/** A payment that was canceled before it was sent. */
export const decideReleased = (operationId: string, outcome: PaymentOutcome): Decision => ({
  from: ['reserved'],
  status: 'released',
  spending: 'released',
  operation: { id: operationId, status: 'done', answer: null },
  outcome,
  endsWait: true,
  delayMs: null,
  event: { kind: 'released', detail: { reason: 'canceled' } },
})

/**
 * What it means that a provider does not know the key of an operation after the time to send it: nothing was done. The answer of a
 * person is asked for again. Null: the payment asks for none. Not for an authorization: see decision 86.
 */
export const toUnseenAnswer = (
  { provider_ref, challenge }: ClaimedPayment,
  { kind }: PaymentOperation,
): ProviderAnswer | null => {
  if (kind !== 'answer')
    return { status: 'declined', provider_ref, reason: 'the provider never received it; order it again' }
  return provider_ref !== null && challenge ? { status: 'challenge', provider_ref, challenge } : null
}

/** What an operator found out about an operation: that it was done, or that it was not. */
export const toFoundAnswer = (
  { provider_ref }: ClaimedPayment,
  { kind, capture, currency, amount_minor }: PaymentOperation,
  isDone: boolean,
): ProviderAnswer =>
  isDone
    ? {
        status: toDoneStatus({ kind: kind === 'answer' ? 'authorize' : kind, capture }),
        provider_ref: provider_ref ?? '',
        network_ref: null,
        amount: { currency, minor: amount_minor },
      }
    : { status: 'declined', provider_ref, reason: 'an operator found that it was not done' }

/** What an answer changes, from wherever it comes. Null: nothing new. */
export const decideAnswer = (
  payment: ClaimedPayment,
  operation: PaymentOperation,
  answer: ProviderAnswer,
  source: 'answer' | 'lookup' | 'webhook' | 'operator',
): Decision | null => {
  const { kind } = operation
  if (kind === 'authorize' || kind === 'answer')
    return decideAuthorization(payment, operation, answer, source)
  const amount = { currency: operation.currency, minor: operation.amount_minor }
  const error = findAnswerError({ kind, amount, capture: operation.capture }, answer)
  const charge = { ...toCharge(payment), amount }
  const event = { kind: `${kind} ${error ? 'unclear' : answer.status}`, detail: { source, answer } }
  if (error) {
    if (operation.status === 'unknown') return null
    const from = [payment.status]
    return {
      from,
      operation: { id: operation.operation_id, status: 'unknown', answer },
      delayMs: null,
      event,
    }
  }
  if (answer.status === 'pending') return null
  const isDeclined = answer.status === 'declined'
  const message = isDeclined
    ? `The ${kind} was declined: ${answer.reason.slice(0, 500)}.`
    : `The ${kind} of ${payment.payment_id} is done.`
  const done = {
    from: kind === 'refund' ? (['succeeded'] as const) : (['sent'] as const),
    operation: { id: operation.operation_id, status: 'done' as const, answer },
    order: { outcome: { status: answer.status, message } },
    delayMs: null,
    event,
  }
  if (isDeclined) return { ...done, ...(kind === 'refund' && { refunded: -operation.amount_minor }) }
  if (kind === 'refund') return done
  const outcome = toAnswerOutcome(charge, answer) as PaymentOutcome
  return kind === 'capture'
    ? { ...done, status: 'succeeded', spending: 'spent', outcome, endsWait: true, receives: true }
    : { ...done, status: 'released', spending: 'released', outcome, endsWait: true, receives: true }
}

const decideAuthorization = (
  payment: ClaimedPayment,
  operation: PaymentOperation,
  answer: ProviderAnswer,
  source: string,
): Decision | null => {
  const charge = toCharge(payment)
  const { capture } = operation
  const error = findAnswerError({ kind: 'authorize', amount: charge.amount, capture }, answer)
  if (error)
    return payment.status === 'unknown'
      ? null
      : decideUnknown(payment, `the provider answered nonsense: ${error}`, answer)
  if (payment.status === 'unknown' && (answer.status === 'pending' || answer.status === 'challenge'))
    return null
  const isAnswer = operation.kind === 'answer'
  const outcome = toAnswerOutcome(charge, answer)
  const done = {
    from: openStatuses,
    operation: { id: operation.operation_id, status: 'done' as const, answer },
    provider_ref: answer.provider_ref,
    ...(isAnswer && { order: { outcome: outcome ?? { status: answer.status, message: 'It is pending.' } } }),
    ...(outcome && { outcome }),
    endsWait: true,
    delayMs: null,
    event: { kind: answer.status, detail: { source, answer } },
  }
  switch (answer.status) {
    case 'succeeded': {
      const { network_ref } = answer
      return { ...done, status: 'succeeded', spending: 'spent', network_ref, receives: true }
    }
    case 'authorized':
      if (payment.is_authorized) return null
      return { ...done, status: 'sent', isAuthorized: true, network_ref: answer.network_ref }
    case 'declined':
      return { ...done, status: 'declined', spending: 'released', receives: true }
    case 'challenge':
      if (!isAnswer && (payment.is_authorized || payment.challenge?.text === answer.challenge.text))
        return null
      // it was sent before the person answered: what is asked now is known by the key of the answer
      if (!isAnswer && source === 'webhook' && operation.answers > 0) return null
      if (isAnswer && operation.answers >= maxAnswers) {
        const unknown = decideUnknown(payment, `${maxAnswers} answers were wrong or lost`, answer)
        return { ...done, ...unknown, order: { outcome: unknown.outcome } }
      }
      return { ...done, status: 'sent', challenge: answer.challenge, delayMs: challengeDelayMs }
    default:
      // what holds money is not pending any more: an old webhook says nothing of it
      if (!payment.is_authorized && (operation.age_ms ?? 0) > maxPendingMs)
        return decideUnknown(payment, 'its provider has said for 15 minutes that it is pending', answer)
      if (!isAnswer && operation.status === 'done') return null
      return { ...done, status: 'sent', endsWait: false, delayMs: toDelayMs(payment.tries) }
  }
}
