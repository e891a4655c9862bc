import type { BackendFactory } from 'bullmq'

/** What the queues need from Redis or from the embedded database. */
export type Engine = {
  /** Makes BullMQ backends; the engine owns their connections and ignores the `connection` option. */
  backend: BackendFactory
  /** Null when a command sent now can be answered; else what is wrong, for people. */
  fault(): string | null
  /** One round trip to the server. Rejects when it fails; may hang when the server does. */
  roundTrip(): Promise<unknown>
  /** Job data as the engine can store it, and back. */
  encode(data: unknown): unknown
  decode(data: unknown): unknown
  /** Lets go of every connection within about half a second, working ones politely. */
  close(): Promise<void>
}

/** An error's text, also for those without a message of their own (refused on IPv4 and IPv6 alike). */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message) return error.message
  return error instanceof AggregateError ? error.errors.map(describeError).join('; ') : error.name
}
