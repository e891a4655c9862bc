import { randomUUID } from 'node:crypto'
import type { Books, Operation, Payment } from './books.ts'

/** The one-time password of every challenge. */
const otp = '123456'
const maxTries = 3
/** By what follows `tok_` in a credential. */
const declineCodes: Record<string, string> = {
  declined: 'card_declined',
  insufficient: 'insufficient_funds',
  expired: 'expired_card',
}

/** A request that was refused before anything was written. */
export class RefusalError extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

export type PaymentRequest = {
  payment_id: string
  amount: number
  currency: string
  payee: { name: string }
  credential: string
  capture: boolean
  answer: string
}
type Asked = {
  key: string
  hash: string
  kind: string
  payment: string | null
  at: number
  body: Partial<PaymentRequest>
}

const newId = (prefix: string): string => `${prefix}_${randomUUID().replaceAll('-', '')}`

/** Does one operation and writes it down. Returns every operation that it changed, its own first. */
export const perform = (books: Books, asked: Asked): Operation[] => {
  const { body, kind } = asked
  if (asked.payment === null) return authorize(books, asked)
  const payment = books.payments.get(asked.payment)
  if (!payment) throw new RefusalError(404, 'unknown_payment')
  if (kind === 'challenge') return answerChallenge(books, asked, payment)
  const amount = checkAmount(body.amount)
  if (body.currency !== payment.currency) throw new RefusalError(400, 'invalid_request')
  const { status, captured, refunded } = payment
  const rules: Record<
    string,
    { from: string; max: number; to: Operation['status']; change: Partial<Payment> }
  > = {
    capture: {
      from: 'authorized',
      max: payment.amount,
      to: 'succeeded',
      change: { status: 'succeeded', captured: amount },
    },
    void: { from: 'authorized', max: payment.amount, to: 'voided', change: { status: 'voided' } },
    refund: {
      from: 'succeeded',
      max: captured - refunded,
      to: 'refunded',
      change: { refunded: refunded + amount },
    },
  }
  const rule = rules[kind]
  if (!rule) throw new RefusalError(404, 'unknown_route')
  const code = status !== rule.from ? 'invalid_state' : amount > rule.max ? 'amount_too_large' : null
  const operation = toOperation(asked, payment, amount)
  books.write(code ? payment : { ...payment, ...rule.change }, {
    ...operation,
    status: code ? 'declined' : rule.to,
    code,
  })
  return [books.operations.get(asked.key) ?? operation]
}

/** An authorization that was pending comes to its end. */
export const finishPending = (books: Books, key: string): Operation[] => {
  const operation = books.operations.get(key)
  const payment = operation && books.payments.get(operation.payment)
  if (operation?.status !== 'pending' || !payment) return []
  return settle(books, payment, operation)
}

const checkAmount = (amount: unknown): number => {
  if (!Number.isSafeInteger(amount) || Number(amount) < 1) throw new RefusalError(400, 'invalid_request')
  return Number(amount)
}

const toOperation = (
  { key, hash, kind, at }: Asked,
  { id, currency }: Payment,
  amount: number,
): Operation => ({
  ...{ key, hash, kind, at, payment: id, amount, currency },
  ...{ status: 'pending', network_ref: newId('net'), code: null, challenge: null },
})

const authorize = (books: Books, asked: Asked): Operation[] => {
  const { payment_id, currency, payee, credential = '', capture = true } = asked.body
  const amount = checkAmount(asked.body.amount)
  if (!payment_id || !payee?.name || !/^[A-Z]{3}$/.test(currency ?? ''))
    throw new RefusalError(400, 'invalid_request')
  const payment: Payment = {
    ...{ id: newId('ch'), key: asked.key, payment_id, payee: payee.name, currency: currency ?? '', amount },
    ...{ capture, captured: 0, refunded: 0, tries: 0, status: 'open' },
  }
  const operation = toOperation(asked, payment, amount)
  const [prefix, kind = ''] = credential.split('_')
  const code = prefix === 'tok' ? declineCodes[kind] : 'invalid_card'
  if (code) books.write({ ...payment, status: 'declined' }, { ...operation, status: 'declined', code })
  else if (kind === 'challenge') {
    const challenge = { type: 'otp', text: 'Enter the code that your bank has sent you.' } as const
    books.write(payment, { ...operation, status: 'requires_action', challenge })
  } else if (kind === 'pending') books.write(payment, operation)
  else settle(books, payment, operation)
  return [books.operations.get(asked.key) ?? operation]
}

const settle = (books: Books, payment: Payment, ...changed: Operation[]): Operation[] => {
  const status = payment.capture ? 'succeeded' : 'authorized'
  const done = changed.map((operation) => ({ ...operation, status, challenge: null }) satisfies Operation)
  books.write({ ...payment, status, captured: payment.capture ? payment.amount : 0 }, ...done)
  return done
}

const answerChallenge = (books: Books, asked: Asked, payment: Payment): Operation[] => {
  const first = books.operations.get(payment.key)
  const operation = toOperation(asked, payment, payment.amount)
  if (!first) throw new RefusalError(404, 'unknown_payment')
  if (first.status !== 'requires_action') {
    const { status, code, challenge } = first
    books.write(payment, { ...operation, status, code, challenge })
  } else if (asked.body.answer === otp) return settle(books, payment, operation, first)
  else if (payment.tries + 1 < maxTries) {
    const { challenge } = first
    books.write(
      { ...payment, tries: payment.tries + 1 },
      { ...operation, status: 'requires_action', challenge },
    )
  } else {
    const end = { status: 'declined', code: 'challenge_failed', challenge: null } as const
    const changed = [operation, first].map((one) => ({ ...one, ...end }))
    books.write({ ...payment, tries: maxTries, status: 'declined' }, ...changed)
    return changed
  }
  return [books.operations.get(asked.key) ?? operation]
}
