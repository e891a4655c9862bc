import { openJournal } from '../journal.ts'

/** A payment; amounts are minor units of `currency`. `payment_id` is the caller's own. */
export type Payment = {
  id: string
  /** Of its authorization. */
  key: string
  payment_id: string
  payee: string
  currency: string
  amount: number
  captured: number
  refunded: number
  status: 'open' | 'authorized' | 'succeeded' | 'voided' | 'declined'
  capture: boolean
  /** Wrong answers to its challenge. */
  tries: number
}

/** What was done under an idempotency key, as it is now. */
export type Operation = {
  key: string
  kind: string
  /** Hash of path and body: the same key with others is a conflict. */
  hash: string
  at: number
  payment: string
  status: 'succeeded' | 'authorized' | 'voided' | 'refunded' | 'declined' | 'pending' | 'requires_action'
  amount: number
  currency: string
  network_ref: string | null
  code: string | null
  challenge: { type: 'otp'; text: string } | null
}

/** Opens the books of this file. */
export const openBooks = (file: string) => {
  const payments = new Map<string, Payment>()
  const operations = new Map<string, Operation>()
  const write = openJournal<[Payment, Operation[]]>(file, ([payment, changed]) => {
    payments.set(payment.id, payment)
    for (const operation of changed) operations.set(operation.key, operation)
  })
  return {
    payments,
    operations,
    write: (payment: Payment, ...changed: Operation[]): void => write([payment, changed]),
  }
}

export type Books = ReturnType<typeof openBooks>
