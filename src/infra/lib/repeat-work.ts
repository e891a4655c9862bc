import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'

/** Repeats `work`, `everyMs` after the last call ended. Errors are logged, never thrown; `what` names the work in the log. */
export const repeatWork = (
  work: () => Promise<unknown>,
  everyMs: number,
  clock: Clock,
  log: Log,
  what: string,
): { stop(): Promise<void> } => {
  const stopped = new AbortController()
  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      try {
        await work()
      } catch (error) {
        if (!stopped.signal.aborted) log.warn({ error: String(error) }, `${what} failed and will be retried`)
      }
      if (!stopped.signal.aborted) await clock.sleep(everyMs, stopped.signal).catch(() => {})
    }
  }
  const running = loop()
  return {
    async stop() {
      stopped.abort()
      await running
    },
  }
}
