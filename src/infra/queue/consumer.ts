import type { Log } from '../../state/ports/log.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import type { WakeUp, WakeUpHandler } from './jobs.ts'

/** A consumer of wake-ups. */
export type QueueConsumer = {
  /** Starts no more handlers; running ones go on. It cannot be undone. */
  pause(): Promise<void>
  /** Waits up to `timeoutMs` for running handlers, then aborts their signals and waits half a second more. */
  close(timeoutMs?: number): Promise<void>
}

/** How long a handler that was aborted, and a server that does not answer, are waited for. */
export const graceMs = 500

/** The handlers of a consumer, at most `concurrency` at once. A wake-up whose handler rejects is logged and not repeated: the reconciler wakes workers for every run that is still due. */
export const createHandlers = (handle: WakeUpHandler, concurrency: number, log: Log) => {
  const running = new Map<AbortController, Promise<void>>()
  const work = async (wakeUp: WakeUp, controller: AbortController): Promise<void> => {
    try {
      await handle(wakeUp, controller.signal)
    } catch (error) {
      log.error({ error, ...wakeUp }, 'queue: handling a wake-up failed')
    } finally {
      running.delete(controller)
    }
  }
  return {
    get isFull(): boolean {
      return running.size >= concurrency
    },
    /** Resolves once the handler has ended. */
    start(wakeUp: WakeUp): Promise<void> {
      const controller = new AbortController()
      const working = work(wakeUp, controller)
      running.set(controller, working)
      return working
    },
    /** Resolves once one of those that run has ended. */
    oneEnded: (): Promise<void> => Promise.race(running.values()),
    async close(timeoutMs = 10_000): Promise<void> {
      const drained = () => Promise.all(running.values())
      if (await settlesWithin(drained(), timeoutMs)) return
      for (const controller of running.keys()) controller.abort(new Error('the consumer is closing'))
      await settlesWithin(drained(), graceMs)
    },
  }
}
