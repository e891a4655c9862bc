import type { Log } from '../../state/ports/log.ts'
import { createHandlers, type QueueConsumer } from './consumer.ts'
import { toWakeUpData, type WakeUp, type WakeUpHandler } from './jobs.ts'
import { createUnavailableError } from './queue-driver.ts'

/** More are dropped: workers look for runs in the database too, and a process without one never takes any. */
const maxWaiting = 10_000

/**
 * Wake-ups within one process, which is the only one on an embedded database. They are lost with it: a worker that starts
 * looks for runs in the database.
 */
export const openProcessQueues = (log: Log) => {
  /** By run, the first one first. */
  const waiting = new Map<string, WakeUp>()
  const consumers = new Set<QueueConsumer & { hasCapacity(): boolean; take(wakeUp: WakeUp): void }>()
  let isClosed = false

  const dispatch = (): void => {
    for (const [runId, wakeUp] of waiting) {
      const free = [...consumers].find((consumer) => consumer.hasCapacity())
      if (!free) return
      // first, since the handler may wake the run again at once
      waiting.delete(runId)
      free.take(wakeUp)
    }
  }
  /** Later, so that a handler that wakes its own run again leaves room for everything else. */
  const dispatchSoon = (): void => void setImmediate(dispatch)

  const assertOpen = (): void => {
    if (isClosed) throw createUnavailableError('it is closed')
  }

  const wakeMany = async (wakeUps: readonly WakeUp[]): Promise<void> => {
    assertOpen()
    for (const wakeUp of wakeUps.slice(0, maxWaiting - waiting.size))
      if (!waiting.has(wakeUp.run_id)) waiting.set(wakeUp.run_id, toWakeUpData(wakeUp))
    dispatchSoon()
  }

  const openConsumer = (handle: WakeUpHandler, concurrency: number) => {
    const handlers = createHandlers(handle, concurrency, log)
    let isPaused = false
    let closing: Promise<void> | undefined
    const pause = async (): Promise<void> => {
      isPaused = true
    }
    return {
      hasCapacity: () => !isPaused && !handlers.isFull,
      take: (wakeUp: WakeUp): void => void handlers.start(wakeUp).then(dispatchSoon),
      pause,
      close: (timeoutMs?: number) => (closing ??= pause().then(() => handlers.close(timeoutMs))),
    }
  }

  return {
    wake: (wakeUp: WakeUp) => wakeMany([wakeUp]),
    wakeMany,
    async onWakeUp(handle: WakeUpHandler, { concurrency }: { concurrency: number }): Promise<QueueConsumer> {
      assertOpen()
      const consumer = openConsumer(handle, concurrency)
      consumers.add(consumer)
      dispatchSoon()
      return consumer
    },
    async submit(): Promise<void> {
      throw createUnavailableError('an embedded database has no public queue')
    },
    driver: null,
    ping: async () =>
      isClosed ? { ok: false as const, error: 'it is closed' } : { ok: true as const, ms: 0 },
    async close(timeoutMs?: number): Promise<void> {
      await Promise.all([...consumers].map((consumer) => consumer.close(timeoutMs)))
      // last, so that a handler that ends now may still wake its run
      isClosed = true
    },
  }
}
