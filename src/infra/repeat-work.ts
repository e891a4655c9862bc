import type { Clock, Log } from '../state/ports.ts'

/** Runs `work` again and again, `everyMs` after the last one ended; faults are logged, never thrown. */
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
      await work().catch((error: unknown) => {
        if (!stopped.signal.aborted) log.warn({ error: String(error) }, `${what} failed and is tried again`)
      })
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
