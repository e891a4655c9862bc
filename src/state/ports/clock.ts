/** Time, injected so that tests can set it. */
export type Clock = {
  /** Wall clock, for people: times that are displayed, never times that are compared across machines. */
  now(): Date
  /** The time zone of this process, as IANA names it. Absent: UTC. */
  timeZone?(): string
  /** Milliseconds that never go backwards, for deadlines. */
  monotonicMs(): number
  /** Resolves after `ms`, rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}
