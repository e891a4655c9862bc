import type { Hints } from '../../../infra/queue/hints.ts'

/** Work for the executor was committed. The message is empty. */
export const paymentWorkChannel = 'mason:payment-work'

/** Says that an order, a consent or a webhook was committed: executors look at once. */
export const createExecutorWake = (hints: Pick<Hints, 'publish'>) => (): void =>
  hints.publish(paymentWorkChannel, '')
