import type { Log } from '../../state/ports/log.ts'
import type { RunKey } from '../database/database.ts'
import type { QueueConsumer } from './consumer.ts'
import { openProcessQueues } from './in-process.ts'
import type { SendOptions, WakeUp, WakeUpHandler } from './jobs.ts'
import type { QueueDriver } from './queue-driver.ts'

/** Both queues. Every method that sends rejects with `queue_unavailable` within a second when the queue is down. */
export type Queues = {
  wake(wakeUp: WakeUp): Promise<void>
  /** Sends wake-ups together. A run that has one waiting gets no second. */
  wakeMany(wakeUps: readonly WakeUp[]): Promise<void>
  /** Calls `handler` for each wake-up, at most `concurrency` at once. A rejection is logged and the wake-up is dropped. */
  onWakeUp(handler: WakeUpHandler, options: { concurrency: number }): Promise<QueueConsumer>
  /** Adds a job to the intake queue, on Redis, unless its id already waits there. Throws `invalid_request` for an invalid id. */
  submit(id: string, data: unknown, options?: SendOptions): Promise<void>
  /** For the leader of the intake queue. Null without Redis. */
  driver: QueueDriver | null
  /** The milliseconds of a round trip, or what is wrong; resolves within a second. */
  ping(): Promise<{ ok: true; ms: number } | { ok: false; error: string }>
  /** Closes consumers as `QueueConsumer.close` does, then the connections. Safe to call twice. */
  close(timeoutMs?: number): Promise<void>
}

/** Wakes a worker for a run that is queued in the database, and does not wait: the outbox sends a wake-up that is lost here. */
export const wakeRun = (queues: Pick<Queues, 'wake'>, { tenant, run_id }: RunKey): void =>
  void queues.wake({ run_id, business_id: tenant }).catch(() => {})

/** Options of `openQueues`. */
export type QueuesOptions = { log: Log } & (
  | {
      kind: 'redis'
      url: string
      /** Begins the keys. */
      prefix: string
      /** The database that the prefix must belong to, which a free one then does. Absent for a mere producer. */
      databaseId?: string
    }
  | { kind: 'embedded' }
)

/**
 * Opens both queues on Redis, or wake-ups within this process. With Redis down it still resolves within 2 s and keeps trying to
 * connect. Rejects with `invalid_settings` where the prefix belongs to another database.
 */
export async function openQueues(options: QueuesOptions): Promise<Queues> {
  if (options.kind === 'embedded') return openProcessQueues(options.log)
  const { openRedisQueues } = await import('./redis-queues.ts')
  return openRedisQueues(options)
}
