import type { Clock } from '../../../state/ports.ts'
import { type Fault, faultOfClock } from './faults.ts'

/** Milliseconds: until the first byte of the body, between two chunks of it, and for the call with its retries. */
export type Clocks = { firstByteMs: number; idleMs: number; totalMs: number }

/** setTimeout fires at once above this. */
const longestTimerMs = 2 ** 31 - 1

/** One provider request: what stops it, and why it stopped. */
export type Exchange = {
  /** Aborted by the caller, by a clock or by the first fault. */
  readonly signal: AbortSignal
  /** Rejects when the signal is aborted; so even a `fetch` that ignores its signal can't hold the call. */
  readonly stopped: Promise<never>
  fault(): Fault | undefined
  /** Says that bytes came, which starts the idle clock again. */
  heard(): void
  /** Says that the server sent its `[DONE]`. */
  end(): void
  ended(): boolean
  /** Notes the first fault, stops the request, and returns an error to throw. */
  fail(fault: Fault): Error
  /** Frees clock, listener and connection. Safe to call twice. */
  close(): void
}

type Options = { clock: Clock; clocks: Clocks; endsAtMs: number }

/** What the signal of a request says that came to its end; one for all, for a stack costs more than the rest of closing. */
const over = new Error('the model request is over')

/** Opens a request under the three clocks. `endsAtMs` is monotonic and belongs to the whole call. */
export const openExchange = ({ clock, clocks, endsAtMs }: Options, caller: AbortSignal): Exchange => {
  const controller = new AbortController()
  const { signal } = controller
  const startedAtMs = clock.monotonicMs()
  let heardAtMs: number | undefined
  let found: Fault | undefined
  let ended = false

  const fail = (fault: Fault): Error => {
    if (!signal.aborted) found ??= fault
    const error = new Error(`the model server ${fault.what}`)
    controller.abort(error)
    return error
  }
  const onCallerAbort = (): void => controller.abort(caller.reason)
  caller.addEventListener('abort', onCallerAbort, { once: true })
  if (caller.aborted) onCallerAbort()

  const dueAtMs = (): number =>
    heardAtMs === undefined ? startedAtMs + clocks.firstByteMs : heardAtMs + clocks.idleMs
  const expire = (): void => {
    if (clock.monotonicMs() >= endsAtMs) fail(faultOfClock('total', clocks.totalMs))
    else if (heardAtMs === undefined) fail(faultOfClock('first byte', clocks.firstByteMs))
    else fail(faultOfClock('idle', clocks.idleMs))
  }
  /** One sleeper for all clocks, not one timer per chunk. It never sleeps past a deadline set meanwhile. */
  const watch = async (): Promise<void> => {
    while (!signal.aborted) {
      const leftMs = Math.min(dueAtMs(), endsAtMs) - clock.monotonicMs()
      if (leftMs <= 0) return expire()
      await clock.sleep(Math.min(leftMs, clocks.idleMs, longestTimerMs), signal)
    }
  }
  const stopped = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  stopped.catch(() => {})
  watch().catch(() => {}) // a sleep rejects when the request is over

  return {
    signal,
    stopped,
    fault: () => found,
    heard: () => {
      heardAtMs = clock.monotonicMs()
    },
    end: () => {
      ended = true
    },
    ended: () => ended,
    fail,
    close: () => {
      caller.removeEventListener('abort', onCallerAbort)
      controller.abort(over)
    },
  }
}
