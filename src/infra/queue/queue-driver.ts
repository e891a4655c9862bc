import type { BackendFactory } from 'bullmq'
import type { Redis } from 'ioredis'
import { MasonError } from '../../state/errors.ts'

/** What the queues need from Redis. */
export type QueueDriver = {
  /** Creates BullMQ backends. The driver owns their connections and ignores the `connection` option. */
  backend: BackendFactory
  /** Begins the keys. */
  prefix: string
  /** For commands that fail at once while the server is down. */
  sender: Redis
  /** A connection for commands that wait; the driver closes it at the latest. */
  openReceiver(): Redis
  /** Null when the server can take a command now; else what is wrong, for people. */
  problem(): string | null
  /** One round trip to the server. Rejects when it fails; may hang when the server does. */
  roundTrip(): Promise<unknown>
  /** Whether jobs may be taken: false once the queue belongs to another database. */
  isOurs(): Promise<boolean>
  /** Closes every connection within about half a second, working ones gracefully. */
  close(): Promise<void>
}

/** An error's message, also for aggregates that have none (refused on IPv4 and on IPv6). */
export function describeQueueError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message) return error.message
  return error instanceof AggregateError ? error.errors.map(describeQueueError).join('; ') : error.name
}

/** The error of a caller that sends while the queue is away or closed. */
export const createUnavailableError = (cause: unknown): MasonError =>
  new MasonError('queue_unavailable', `the queue is unavailable: ${describeQueueError(cause)}`, {
    cause,
    remedy: 'run `mason doctor` to find the cause; runs are accepted without the queue',
  })
