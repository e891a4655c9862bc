import type { Clock } from '../../state/ports/clock.ts'
import { createTimeoutError, leastRate, type ProviderError } from './provider-errors.ts'

/** Milliseconds until the first content of the body, without content after that, and for the call with its retries. */
export type RequestTimeouts = { firstByteMs: number; idleMs: number; totalMs: number }

/** setTimeout fires at once above this. */
const maxTimerMs = 2 ** 31 - 1

type Options = { clock: Clock; clocks: RequestTimeouts; endsAtMs: number; over?: AbortSignal | undefined }

/** The abort reason of every finished request: a shared one, because a stack costs more than the rest of closing. */
const requestOverError = new Error('the model request is over')

/** Starts the three timeouts of a request. `endsAtMs` is monotonic and belongs to the whole call. */
export const openExchangeControl = ({ clock, clocks, endsAtMs, over }: Options, caller: AbortSignal) => {
  const controller = new AbortController()
  const signal: AbortSignal = controller.signal
  const startedAtMs = clock.monotonicMs()
  let dueAtMs = startedAtMs + clocks.firstByteMs
  let hasBytes = false
  let lastContentAtMs: number | undefined
  let firstError: ProviderError | undefined
  let ended = false
  let cut = false

  const fail = (error: ProviderError): Error => {
    if (!signal.aborted) firstError ??= error
    const reason = new Error(`the model server ${error.what}`)
    controller.abort(reason)
    return reason
  }
  const onCallerAbort = (): void => controller.abort(caller.reason)
  caller.addEventListener('abort', onCallerAbort, { once: true })
  if (caller.aborted) onCallerAbort()
  const onOver = (): void => {
    cut = !signal.aborted
    controller.abort(requestOverError)
  }
  over?.addEventListener('abort', onOver, { once: true })

  const expire = (): void => {
    const { firstByteMs, idleMs, totalMs } = clocks
    const now = clock.monotonicMs()
    if (now >= endsAtMs) fail(createTimeoutError('total', totalMs))
    else if (!hasBytes) fail(createTimeoutError('first byte', firstByteMs))
    else if (lastContentAtMs === undefined)
      fail(createTimeoutError('first content', Math.round(now - startedAtMs)))
    else fail(createTimeoutError(now - lastContentAtMs < idleMs ? 'rate' : 'idle', idleMs))
  }
  /** One timer for all timeouts instead of one per chunk. It never sleeps past a deadline that was set meanwhile. */
  const watch = async (): Promise<void> => {
    while (!signal.aborted) {
      const leftMs = Math.min(dueAtMs, endsAtMs) - clock.monotonicMs()
      if (leftMs <= 0) return expire()
      await clock.sleep(Math.min(leftMs, clocks.idleMs, maxTimerMs), signal)
    }
  }
  const stopped = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  stopped.catch(() => {})
  watch().catch(() => {}) // a sleep rejects when the request is over

  return {
    /** Aborted by the caller, by a timeout or by the first error. */
    signal,
    /** Rejects when the signal is aborted, so that a `fetch` that ignores its signal cannot block the call. */
    stopped,
    error: () => firstError,
    /** Whether it ended because its answer is over, while the server went on. */
    wasCut: () => cut,
    /** Reports received bytes. They restart no timeout: they may only keep the connection alive. */
    bytesReceived: (): void => {
      hasBytes = true
    },
    /** Reports bytes of the answer's content, which restart the idle timeout unless they come too slowly. */
    contentReceived: (length: number): void => {
      const now = clock.monotonicMs()
      const idleAtMs = now + clocks.idleMs
      const paidUntilMs = dueAtMs + (length / leastRate) * 1000
      dueAtMs = lastContentAtMs === undefined ? idleAtMs : Math.min(idleAtMs, paidUntilMs)
      lastContentAtMs = now
    },
    /** Reports the server's `[DONE]`. */
    end: (): void => {
      ended = true
    },
    ended: () => ended,
    /** Stores the first error, stops the request, and returns an error to throw. */
    fail,
    /** Frees timer, listener and connection. Safe to call twice. */
    close: (): void => {
      caller.removeEventListener('abort', onCallerAbort)
      over?.removeEventListener('abort', onOver)
      controller.abort(requestOverError)
    },
  }
}

/** What stops a provider request, and why it stopped. */
export type ExchangeControl = ReturnType<typeof openExchangeControl>
