import type { PaymentProvider, ProviderAnswer } from '../../src/features/payments/providers/provider.ts'

/** What goes wrong with the next exchange. */
export type ProviderFailure =
  | 'fail before'
  | 'fail after'
  | 'decline'
  | 'pending'
  | 'challenge'
  | 'wrong amount'

type Operation = Parameters<PaymentProvider['toRequest']>[0]

/** A provider in this process that keeps books, knows keys within its window, and does what it says. */
export const createTestProvider = ({ windowMs = 3_600_000 } = {}) => {
  const books = new Map<string, { operation: Operation; answer: ProviderAnswer }>()
  const failures: ProviderFailure[] = []
  const sent: { request: string; key: string }[] = []
  let isForgetful = false
  let isMute = false
  const act = (operation: Operation, failure: ProviderFailure | undefined): ProviderAnswer => {
    const provider_ref = operation.provider_ref ?? `ref_${operation.payment_id}`
    if (failure === 'decline') return { status: 'declined', provider_ref, reason: 'insufficient funds' }
    if (failure === 'pending') return { status: 'pending', provider_ref }
    if (failure === 'challenge')
      return { status: 'challenge', provider_ref, challenge: { type: 'otp', text: 'Type the code 123.' } }
    const amount =
      failure === 'wrong amount'
        ? { ...operation.amount, minor: operation.amount.minor + 1 }
        : operation.amount
    const status = (
      {
        authorize: operation.capture ? 'succeeded' : 'authorized',
        capture: 'succeeded',
        void: 'voided',
        refund: 'refunded',
      } as const
    )[operation.kind]
    return { status, provider_ref, network_ref: 'net_1', amount }
  }
  const provider: PaymentProvider = {
    class: 'keyed',
    windowMs,
    toRequest: (operation) => JSON.stringify(operation),
    async send(request, key, checkLease) {
      checkLease()
      sent.push({ request, key })
      const failure = failures.shift()
      if (failure === 'fail before') throw new Error('the connection was cut')
      const operation = JSON.parse(request) as Operation
      const entry = books.get(key) ?? { operation, answer: act(operation, failure) }
      books.set(key, entry)
      if (failure === 'fail after') throw new Error('the connection was cut')
      return entry.answer
    },
    lookup: async (key) => {
      if (isMute) throw new Error('the look-up failed')
      return isForgetful ? null : (books.get(key)?.answer ?? null)
    },
    async answerChallenge(providerRef, answer, key, checkLease) {
      checkLease()
      if (failures.shift() === 'fail before') throw new Error('the connection was cut')
      const found = [...books].find(([, { answer: of }]) => of.provider_ref === providerRef)
      if (!found) throw new Error('there is no such payment')
      const [authorization, { operation, answer: before }] = found
      const result: ProviderAnswer = answer === '123' ? act(operation, undefined) : before
      books.set(authorization, { operation, answer: result })
      sent.push({ request: 'an answer', key })
      return result
    },
    readWebhook: (headers, body) =>
      headers.signature === 'genuine' ? JSON.parse(Buffer.from(body).toString()) : null,
  }
  return {
    provider,
    failures,
    sent,
    books,
    /** A pending payment is settled. */
    settle(key: string) {
      const entry = books.get(key)
      if (entry) books.set(key, { ...entry, answer: act(entry.operation, undefined) })
    },
    /** It no longer knows what it did. */
    forget() {
      isForgetful = true
    },
    remember() {
      isForgetful = false
    },
    /** It answers no look-up, or does again. */
    mute(value = true) {
      isMute = value
    },
    /** What it has taken, in minor units. */
    total: () =>
      [...books.values()]
        .filter(({ operation, answer }) => operation.kind === 'authorize' && answer.status === 'succeeded')
        .reduce((sum, { operation }) => sum + operation.amount.minor, 0),
  }
}
