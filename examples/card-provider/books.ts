import { existsSync, fdatasyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'

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

/** Opens the books: a file of JSON lines, each on the disk before `write` returns. A line that a kill cut off never counted. */
export const openBooks = (file: string) => {
  const text = existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
  const end = text.lastIndexOf('\n') + 1
  if (end < text.length) truncateSync(file, end)
  const journal = openSync(file, 'a')
  const payments = new Map<string, Payment>()
  const operations = new Map<string, Operation>()
  const apply = (payment: Payment, changed: Operation[]): void => {
    payments.set(payment.id, payment)
    for (const operation of changed) operations.set(operation.key, operation)
  }
  for (const line of text.subarray(0, end).toString().split('\n'))
    if (line) apply(...(JSON.parse(line) as [Payment, Operation[]]))
  return {
    payments,
    operations,
    write(payment: Payment, ...changed: Operation[]): void {
      const line = Buffer.from(`${JSON.stringify([payment, changed])}\n`)
      for (let at = 0; at < line.length; ) at += writeSync(journal, line, at)
      fdatasyncSync(journal)
      apply(payment, changed)
    },
  }
}

export type Books = ReturnType<typeof openBooks>
