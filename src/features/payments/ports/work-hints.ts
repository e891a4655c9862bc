import type { Hints } from '../../../infra/queue/hints.ts'

/** Work for the executor was committed. The message names its kind; an empty one, of an earlier version, means all. */
export const paymentWorkChannel = 'mason:payment-work'
/** What the executor looks for: orders and payments, answers to consents, messages of providers. */
export type PaymentWork = 'payments' | 'consents' | 'webhooks'

/** Says that work of a kind was committed: executors look for it at once. */
export const createExecutorWake =
  (hints: Pick<Hints, 'publish'>) =>
  (work: PaymentWork): void =>
    hints.publish(paymentWorkChannel, work)
