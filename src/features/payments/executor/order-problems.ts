import { type ErrorCode, isMasonError } from '../../../state/errors.ts'
import { createViolation, type Violation } from '../mandates/violations.ts'
import type { PaymentOperation } from './operations.ts'
import { maxAnswers } from './payment-answers.ts'
import type { ClaimedPayment, TakenOrder } from './work-queue.ts'

/**
 * What an operator may settle: a payment that is unknown by its authorization, else a later operation without a clear answer, else an
 * authorization that has no end after the time in which its provider knows keys.
 */
export const findUnclear = (
  { status, is_authorized }: ClaimedPayment,
  operations: readonly PaymentOperation[],
  windowMs: number,
): PaymentOperation | undefined =>
  status === 'unknown'
    ? operations[0]
    : (operations.find(
        ({ kind, status: of }) =>
          (of === 'sent' || of === 'unknown') &&
          (kind === 'refund' ? status === 'succeeded' : kind !== 'authorize' && status === 'sent'),
      ) ??
      operations
        .slice(0, 1)
        .find(({ age_ms }) => status === 'sent' && !is_authorized && (age_ms ?? 0) >= windowMs))

/** Why an operation is over without an answer; null: it is not. The payment was settled in another way meanwhile. */
export const findOperationProblem = (
  { kind }: PaymentOperation,
  { status }: ClaimedPayment,
): string | null =>
  kind === 'refund' || status === 'sent' || status === 'unknown'
    ? null
    : `The payment already has the status ${status}.`

/** Why an order cannot be carried out now, or ever; null: it can. */
export const findOrderProblem = (
  { kind, request }: TakenOrder,
  payment: ClaimedPayment,
  operations: readonly PaymentOperation[],
  unclear: PaymentOperation | undefined,
): string | null => {
  const { status } = payment
  const isHeld = status === 'sent' && payment.is_authorized
  switch (kind) {
    case 'settle':
      return unclear
        ? null
        : `The payment has the status ${status}, and nothing of it is unclear: there is nothing to settle.`
    case 'capture':
    case 'void':
      if (!isHeld)
        return `The payment has the status ${status} and holds no money: there is nothing to ${kind}.`
      return operations.some((one) => ['capture', 'void'].includes(one.kind) && one.status !== 'done')
        ? 'A capture or void of this payment is under way.'
        : null
    case 'refund': {
      const amount = request.amount_minor
      const rest = payment.amount_minor - payment.refunded_minor
      if (status !== 'succeeded')
        return `The payment has the status ${status}: only one that succeeded can be refunded.`
      return Number.isSafeInteger(amount) && Number(amount) > 0 && Number(amount) <= rest
        ? null
        : `amount_minor must be from 1 to ${rest}, what is not refunded yet.`
    }
    case 'answer':
      if (status !== 'sent' || !payment.challenge)
        return `The payment has the status ${status} and asks for no answer.`
      return operations.filter((one) => one.kind === 'answer').length < maxAnswers
        ? null
        : `There were ${maxAnswers} answers already.`
    default:
      return null
  }
}

/** The violation of an order that cannot be read or carried out. */
export const orderViolation = (field: string, text: string): Violation =>
  createViolation('invalid_order', field, text)

/** Null where the work throws an error of this code. */
export const orNull = <Value>(work: Promise<Value>, code: ErrorCode): Promise<Value | null> =>
  work.catch((error: unknown) => {
    if (isMasonError(error, code)) return null
    throw error
  })
