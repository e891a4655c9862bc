import type { Json } from '../runtime-state.ts'
import type { Sql } from './sql.ts'

/**
 * How something ended that a call waited for. `status` is in the words of what ended it; Mason's own are `expired`, `failed`
 * and `cancelled`.
 *
 * @example
 * ```ts
 * import type { WaitOutcome } from 'mason-runtime'
 *
 * const isPaid = ({ status }: WaitOutcome): boolean => status === 'succeeded'
 * ```
 */
export type WaitOutcome = { status: string; [field: string]: Json }

/** A wait, as its row names it: the call and the number of the wait within it. */
export type WaitRef = { plan_seq: number; index: number; part: number }

/** What a poll found: the outcome, or in how many milliseconds to look again. */
export type PollResult = { outcome: WaitOutcome } | { againInMs: number }

/**
 * Something that a call waits for, while its run is parked.
 *
 * @example
 * ```ts
 * import type { WaitRequest } from 'mason-runtime'
 *
 * const rendering = (id: string): WaitRequest => ({
 *   kind: 'job',
 *   refId: id,
 *   poll: async (signal) => {
 *     const response = await fetch(`https://render.example/jobs/${id}`, { signal })
 *     return response.status === 200 ? { outcome: { status: 'succeeded' } } : { againInMs: 5000 }
 *   },
 * })
 * ```
 */
export type WaitRequest = {
  kind: 'payment' | 'run' | 'job'
  /** The id of what it waits for; whatever ends it names this. */
  refId: string
  /** In how many milliseconds it ends as `expired`; absent: never. */
  expiresInMs?: number
  /** What was started may end at any time: `expiresInMs` is refused. */
  neverExpires?: true
  /**
   * Starts what it waits for, in the transaction that writes the wait: both happen or neither. Not called again when the
   * call is visited again. Only statements belong here: what has left the database cannot be rolled back.
   */
  start?(sql: Sql, wait: WaitRef): Promise<void>
  /** Is called once the wait is committed, and while it has no outcome at each visit of the call; says for example that there is work. */
  onStarted?(): void
  /** Jobs: whether it is done. Called at once and then when it is due. An error ends the wait and is the call's. */
  poll?(signal: AbortSignal): Promise<PollResult>
}

/** What a run waits for: what a tool asks for, or an operator who settles a side effect of unknown outcome. */
export type RunWait = Omit<WaitRequest, 'kind'> & { kind: WaitRequest['kind'] | 'effect' }

/** A wait as its row has it. */
export type WaitState = { outcome: WaitOutcome | null; is_poll_due: boolean }
