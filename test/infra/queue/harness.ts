import { randomUUID } from 'node:crypto'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type Hints, openHints } from '../../../src/infra/queue/hints.ts'
import type { WakeUp } from '../../../src/infra/queue/jobs.ts'
import { openQueues, type Queues } from '../../../src/infra/queue/queues.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import { waitedFor } from '../../support/clock.ts'

export const redisUrl = process.env.TEST_REDIS_URL
export const runPrefix = `mason-test-${randomUUID()}`

/** Polls for a fact, with a deadline. */
export async function until(
  fact: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 90_000,
): Promise<void> {
  const waited = waitedFor()
  while (!(await fact())) {
    if (waited(withinMs)) throw new Error(`not within ${withinMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export const wakeUp = (run_id: string): WakeUp => ({ run_id, business_id: 'acme' })

/** A promise that is opened by hand. */
export const gate = () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

export type Logged = { level: keyof Log; message: string; data: Record<string, unknown> }

export const recordingLog = (logged: Logged[]): Log => {
  const at = (level: keyof Log) => (data: Record<string, unknown>, message: string) =>
    void logged.push({ level, message, data })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

export type Harness = {
  setUp(): Promise<void>
  /** A clean slate; what was opened before is closed by then. */
  reset(): Promise<void>
  open(log: Log): Promise<Queues>
  openHints(log: Log): Promise<Hints>
  tearDown(): Promise<void>
}

export const embedded = (): Harness => ({
  setUp: async () => {},
  reset: async () => {},
  open: (log) => openQueues({ kind: 'embedded', log }),
  openHints: (log) => openHints({ kind: 'embedded', log }),
  tearDown: async () => {},
})

export function served(url: string): Harness & {
  readonly admin: Redis
  readonly prefix: string
  /** A client that knows nothing of Mason. */
  plainClient(queueName: string): Queue
} {
  let admin: Redis
  let prefix = runPrefix
  return {
    get admin() {
      return admin
    },
    get prefix() {
      return prefix
    },
    setUp: async () => {
      admin = new Redis(url)
    },
    reset: async () => {
      prefix = `${runPrefix}-${randomUUID()}`
    },
    open: (log) => openQueues({ kind: 'redis', url, prefix, log }),
    openHints: (log) => openHints({ kind: 'redis', url, prefix, log }),
    plainClient: (name) => new Queue(name, { connection: admin, prefix }),
    tearDown: async () => {
      for await (const keys of admin.scanStream({ match: `${runPrefix}*`, count: 1000 })) {
        if (keys.length > 0) await admin.unlink(...keys)
      }
      await admin.quit()
    },
  }
}

/** Opens things and closes them after each test. */
export function scope(harness: Harness) {
  const logged: Logged[] = []
  const closers: (() => Promise<unknown>)[] = []
  const keep = <Value>(value: Value, close: (value: Value) => Promise<unknown>): Value => {
    closers.push(() => close(value))
    return value
  }
  beforeAll(() => harness.setUp())
  afterAll(() => harness.tearDown())
  beforeEach(async () => {
    logged.length = 0
    await harness.reset()
  })
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })
  return {
    logged,
    keep,
    open: async () => keep(await harness.open(recordingLog(logged)), (queues) => queues.close(1_000)),
    openHints: async () => keep(await harness.openHints(recordingLog(logged)), (hints) => hints.close()),
  }
}

/** The same, with clients of the Redis. */
export const redisScope = (harness: ReturnType<typeof served>) => {
  const opened = scope(harness)
  const plainClient = (name: string) => opened.keep(harness.plainClient(name), (queue) => queue.close())
  return { ...opened, plainClient }
}
