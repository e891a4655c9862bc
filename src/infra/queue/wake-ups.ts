import type { Log } from '../../state/ports/log.ts'
import { sleep } from '../../state/sleep.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import { createHandlers, graceMs, type QueueConsumer } from './consumer.ts'
import { readWakeUp, toWakeUpData, type WakeUp, type WakeUpHandler } from './jobs.ts'
import type { QueueDriver } from './queue-driver.ts'
import { disconnectRedis } from './redis.ts'

/** More are dropped, the latest ones: workers look for runs in the database too. */
const maxWaiting = 100_000
/** How long an idle worker waits before it asks again, in seconds. */
const waitS = 5
const retryMs = 1_000

/** The key of the set that wakes workers. */
export const toWakeUpsKey = (prefix: string): string => `${prefix}:wake-ups`

/** Adds wake-ups in one round trip. A run that has one waiting gets no second. */
export const addWakeUps = async (driver: QueueDriver, wakeUps: readonly WakeUp[]): Promise<void> => {
  const now = Date.now()
  const members = wakeUps.flatMap((wakeUp) => [now, JSON.stringify(toWakeUpData(wakeUp))])
  const added = driver.sender.zadd(toWakeUpsKey(driver.prefix), 'NX', ...members)
  // those that come alone are followed by those of the outbox
  const isMany = wakeUps.length > 1
  await Promise.all([
    added,
    isMany && driver.sender.zremrangebyrank(toWakeUpsKey(driver.prefix), maxWaiting, -1),
  ])
}

/**
 * Takes wake-ups while a handler is free: the one that has waited for the longest, by the worker that has. One that is
 * taken and lost with its process is sent again by the outbox or the reconciler.
 */
export const consumeWakeUps = (
  driver: QueueDriver,
  handle: WakeUpHandler,
  concurrency: number,
  log: Log,
): QueueConsumer => {
  const handlers = createHandlers(handle, concurrency, log)
  const receiver = driver.openReceiver()
  let connection: number | null = null
  receiver.on('close', () => {
    connection = null
  })
  let isPaused = false

  const takeNext = async (): Promise<void> => {
    if (handlers.isFull) return handlers.oneEnded()
    connection ??= Number(await receiver.client('ID'))
    if (isPaused) return
    const [, member] = (await receiver.bzpopmin(toWakeUpsKey(driver.prefix), waitS)) ?? []
    if (member === undefined) return
    // where that is not known it is handled: the claim asks the database
    if (!(await driver.isOurs().catch(() => true))) isPaused = true
    if (isPaused) return void (await driver.sender.zadd(toWakeUpsKey(driver.prefix), 0, member))
    const wakeUp = readWakeUp(member)
    if (wakeUp) void handlers.start(wakeUp)
    else log.warn({ data: member }, 'queue: ignored an invalid wake-up')
  }
  let reported = ''
  /** The driver logs lost connections; what Redis refuses is logged here, once. */
  const report = (error: Error): void => {
    if (error.name !== 'ReplyError' || error.message === reported) return
    reported = error.message
    log.error({ error }, 'queue: Redis refused to give a wake-up')
  }
  const takeAll = async (): Promise<void> => {
    while (!isPaused)
      await takeNext().catch((error) => {
        if (isPaused) return
        report(error)
        return sleep(retryMs)
      })
  }
  const taking = takeAll()

  const pause = async (): Promise<void> => {
    isPaused = true
    if (connection !== null) {
      // what it has taken by then is put back first; while no handler is free it takes nothing
      const unblocked = driver.sender
        .client('UNBLOCK', connection)
        .then(() => (handlers.isFull ? undefined : taking))
      await settlesWithin(unblocked, graceMs)
    }
    disconnectRedis(receiver)
  }
  let closing: Promise<void> | undefined
  return {
    pause,
    close: (timeoutMs) => (closing ??= pause().then(() => handlers.close(timeoutMs))),
  }
}
