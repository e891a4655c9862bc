import type { Log } from '../../state/ports/log.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import type { QueueConsumer } from './consumer.ts'
import { toWakeUpData, type WakeUp, type WakeUpHandler } from './jobs.ts'
import { createUnavailableError } from './queue-driver.ts'

type Consumer = {
  handle: WakeUpHandler
  concurrency: number
  isPaused: boolean
  running: Map<AbortController, Promise<void>>
  closing?: Promise<void>
}

const graceMs = 500
/** More are dropped: workers look for runs in the database too, and a process without one never takes any. */
const maxWaiting = 10_000

/**
 * Wake-ups within one process, which is the only one on an embedded database. They are lost with it: a worker that starts
 * looks for runs in the database.
 */
export const openProcessQueues = (log: Log) => {
  /** By run, the first one first. */
  const waiting = new Map<string, WakeUp>()
  const handled = new Set<string>()
  const consumers = new Set<Consumer>()
  let isClosed = false

  const start = ({ handle, running }: Consumer, wakeUp: WakeUp): void => {
    const controller = new AbortController()
    const work = async (): Promise<void> => {
      try {
        await handle(wakeUp, controller.signal)
      } catch (error) {
        log.error({ error, ...wakeUp }, 'queue: handling a wake-up failed')
      } finally {
        running.delete(controller)
        handled.delete(wakeUp.run_id)
        dispatchSoon()
      }
    }
    handled.add(wakeUp.run_id)
    running.set(controller, work())
  }

  const dispatch = (): void => {
    for (const consumer of consumers)
      for (const [runId, wakeUp] of waiting) {
        if (consumer.isPaused || consumer.running.size >= consumer.concurrency) break
        waiting.delete(runId)
        start(consumer, wakeUp)
      }
  }
  /** Later, so that a handler that wakes its own run again leaves room for everything else. */
  const dispatchSoon = (): void => void setImmediate(dispatch)

  const assertOpen = (): void => {
    if (isClosed) throw createUnavailableError('it is closed')
  }

  const wakeMany = async (wakeUps: readonly WakeUp[], { coalesce = false } = {}): Promise<void> => {
    assertOpen()
    for (const wakeUp of wakeUps.slice(0, maxWaiting - waiting.size))
      if (!waiting.has(wakeUp.run_id) && !(coalesce && handled.has(wakeUp.run_id)))
        waiting.set(wakeUp.run_id, toWakeUpData(wakeUp))
    dispatchSoon()
  }

  const closeConsumer = async (consumer: Consumer, timeoutMs = 10_000): Promise<void> => {
    consumer.isPaused = true
    const { running } = consumer
    const drained = () => Promise.all(running.values())
    if (await settlesWithin(drained(), timeoutMs)) return
    for (const controller of running.keys()) controller.abort(new Error('the consumer is closing'))
    await settlesWithin(drained(), graceMs)
  }

  return {
    wake: (wakeUp: WakeUp) => wakeMany([wakeUp]),
    wakeMany,
    async onWakeUp(handle: WakeUpHandler, { concurrency }: { concurrency: number }): Promise<QueueConsumer> {
      assertOpen()
      const consumer: Consumer = { handle, concurrency, isPaused: false, running: new Map() }
      consumers.add(consumer)
      dispatchSoon()
      return {
        async pause() {
          consumer.isPaused = true
        },
        close: (timeoutMs?: number) => (consumer.closing ??= closeConsumer(consumer, timeoutMs)),
      }
    },
    async submit(): Promise<void> {
      throw createUnavailableError('an embedded database has no public queue')
    },
    driver: null,
    ping: async () =>
      isClosed ? { ok: false as const, error: 'it is closed' } : { ok: true as const, ms: 0 },
    async close(timeoutMs?: number): Promise<void> {
      await Promise.all(
        [...consumers].map((consumer) => (consumer.closing ??= closeConsumer(consumer, timeoutMs))),
      )
      // last, so that a handler that ends now may still wake its run
      isClosed = true
    },
  }
}
