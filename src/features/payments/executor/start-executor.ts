import type { Hints } from '../../../infra/queue/hints.ts'
import { paymentWorkChannel } from '../ports/work-hints.ts'
import type { ExecutorServices } from './executor-services.ts'
import { createPaymentExecutor } from './payment-executor.ts'
import { handleMessage, takeMessages } from './webhook-inbox.ts'
import { claimOpenPayments, takeOrders } from './work-queue.ts'

/** How much an executor does at a time, and how often it looks for work where there is none, in milliseconds. */
export type ExecutorOptions = {
  concurrency?: number
  idleMs?: number
  /** Hints that there is work of a kind, for which it looks at once. One that is lost costs `idleMs`. */
  hints?: Pick<Hints, 'subscribe'> | null
}

/** How often it looks for agent cards to sign: no payment waits for one. */
const cardsIdleMs = 1000

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
  const { signCard = async () => false } = services
  const stopping = new AbortController()
  const executor = createPaymentExecutor({ ...services, leaseMs }, new AbortController().signal)
  const [running, reading] = [new Set<Promise<void>>(), new Set<Promise<void>>()]
  const run = (lane: typeof running, work: Promise<void>, what: Record<string, string | number>): void => {
    const tracked = work
      .catch((error: unknown) =>
        log.warn({ ...what, error: String(error) }, 'a payment was not finished and will be tried again'),
      )
      .finally(() => lane.delete(tracked))
    lane.add(tracked)
  }
  /** True: more may be due. */
  const takePayments = async (): Promise<boolean> => {
    const free = concurrency - running.size
    const claimedAt = clock.monotonicMs()
    // what was begun goes first, since the provider knows its key for a limited time
    const half = Math.ceil(free / 2)
    const payments = await claimOpenPayments(database, half, leaseMs)
    for (const payment of payments)
      run(running, executor.runPayment(payment, claimedAt), { payment_id: payment.payment_id })
    const orders = payments.length < free ? await takeOrders(database, free - payments.length, leaseMs) : []
    for (const order of orders) run(running, executor.runOrder(order), { payment_id: order.payment_id })
    return payments.length === half || payments.length + orders.length === free
  }
  const takeWebhooks = async (): Promise<boolean> => {
    const free = concurrency - reading.size
    const messages = await takeMessages(database, free, leaseMs)
    for (const message of messages)
      run(reading, handleMessage(database, message, services.openProvider, executor), {
        message_id: message.message_id,
      })
    return messages.length === free
  }
  /** Of each loop, ended by a hint, also by one that comes while it looks for work: what it missed is looked for again. */
  const pauses = new Map<string, AbortController>()
  const wake = (work: string): void => {
    const named = pauses.get(work)
    for (const pause of named ? [named] : pauses.values()) pause.abort()
  }
  /** Each kind of work has a loop of its own, so that none waits for another, whatever it throws and however slow it is. */
  const loop = async (
    work: string,
    take: () => Promise<boolean>,
    { lane = new Set(), pauseMs = idleMs } = {},
  ): Promise<void> => {
    const isFull = (): boolean => lane.size >= concurrency
    for (let failures = 0; !stopping.signal.aborted; ) {
      const pause = new AbortController()
      pauses.set(work, pause)
      const isMoreDue = await take().then(
        (isMore) => {
          failures = 0
          return isMore
        },
        (error: unknown) => {
          // the first, second, fourth and so on: a database that is down for a day is no flood of warnings
          if (Number.isInteger(Math.log2(++failures)))
            log.warn({ work, failures, error: String(error) }, 'the executor found no work, and looks again')
          return false
        },
      )
      if (isMoreDue && !isFull()) continue
      await (isFull() ? Promise.race(lane) : clock.sleep(pauseMs, pause.signal).catch(() => {}))
    }
    await Promise.all(lane)
  }
  const subscribing = hints?.subscribe(paymentWorkChannel, wake)
  const looping = Promise.all([
    loop('payments', takePayments, { lane: running }),
    loop('webhooks', takeWebhooks, { lane: reading }),
    loop('consents', async () => (await decideConsent()) !== null),
    loop('agent cards', signCard, { pauseMs: Math.max(idleMs, cardsIdleMs) }),
  ])
  return {
    async stop() {
      stopping.abort()
      wake('')
      await (await subscribing)?.()
      await looping
    },
  }
}
