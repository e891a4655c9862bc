import { type Hints, paymentWorkChannel } from '../../infra/queue/hints.ts'
import { signNextCard } from './card-signatures.ts'
import { createPaymentExecutor, type ExecutorServices } from './payment-executor.ts'
import { handleMessage, takeMessages } from './webhook-inbox.ts'
import { claimOpenPayments, takeOrders } from './work-queue.ts'

/** How much an executor does at a time, and how often it looks for work where there is none, in milliseconds. */
export type ExecutorOptions = {
  concurrency?: number
  idleMs?: number
  /** Hints that there is work, for which it looks at once. One that is lost costs `idleMs`. */
  hints?: Pick<Hints, 'subscribe'> | null
}

/** An executor at work. `stop` waits for what is under way: a request that has been sent is not cut off. */
export type RunningExecutor = { stop(): Promise<void> }

/**
 * Starts an executor of payments: it takes orders, payments that are due, webhooks and consents, beside any number of other
 * executors. Errors are logged, and the work is tried again.
 */
export const startExecutor = (
  services: ExecutorServices,
  { concurrency = 16, idleMs = 100, hints = null }: ExecutorOptions = {},
): RunningExecutor => {
  const { database, clock, log, leaseMs = 30_000, decideConsent = async () => null } = services
  const stopping = new AbortController()
  /** Ended by a hint, also by one that comes while it looks for work: what it missed is looked for again. */
  let pause = new AbortController()
  const executor = createPaymentExecutor({ ...services, leaseMs }, new AbortController().signal)
  const running = new Set<Promise<void>>()
  const run = (work: Promise<void>, what: Record<string, string | number>): void => {
    const tracked = work
      .catch((error: unknown) =>
        log.warn({ ...what, error: String(error) }, 'a payment was not finished and will be tried again'),
      )
      .finally(() => running.delete(tracked))
    running.add(tracked)
  }
  const takeWork = async (): Promise<number> => {
    const free = concurrency - running.size
    if (free <= 0) return 0
    const claimedAt = clock.monotonicMs()
    // what was begun goes first, since the provider knows its key for a limited time
    const payments = await claimOpenPayments(database, Math.ceil(free / 2), leaseMs)
    for (const payment of payments)
      run(executor.runPayment(payment, claimedAt), { payment_id: payment.payment_id })
    const orders = payments.length < free ? await takeOrders(database, free - payments.length, leaseMs) : []
    for (const order of orders) run(executor.runOrder(order), { payment_id: order.payment_id })
    const messages = await takeMessages(database, concurrency, leaseMs)
    for (const message of messages)
      run(handleMessage(database, message, services.openProvider, executor), {
        message_id: message.message_id,
      })
    const consent = await decideConsent()
    const isSigned = await signNextCard(database, services.signer, log)
    return orders.length + payments.length + messages.length + (consent === null ? 0 : 1) + (isSigned ? 1 : 0)
  }
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      pause = new AbortController()
      const taken = await takeWork().catch((error: unknown) => {
        log.warn({ error: String(error) }, 'no orders could be taken, which will be tried again')
        return 0
      })
      if (taken > 0 && running.size < concurrency) continue
      const idle = clock.sleep(idleMs, pause.signal).catch(() => {})
      await (running.size < concurrency ? idle : Promise.race([...running]))
    }
    await Promise.all(running)
  }
  const subscribing = hints?.subscribe(paymentWorkChannel, () => pause.abort())
  const looping = loop()
  return {
    async stop() {
      stopping.abort()
      pause.abort()
      await (await subscribing)?.()
      await looping
    },
  }
}
