import { isNotConnectionError } from 'bullmq'
import type { Log } from '../../state/ports.ts'
import { describeError } from './engine.ts'

export type ErrorReporter = (error: Error, what: string) => void

const silenceMs = 30_000

/** Refused, reset, timed out and the like: errors of the operating system name their call. */
const isConnectionError = (error: Error) => 'syscall' in error || !isNotConnectionError(error)

/** Logs errors of the queue's machinery: the same one at most twice a minute, lost connections not at all (the engine says that once). */
export function createErrorReporter(log: Log): ErrorReporter {
  const lastAt = new Map<string, number>()
  return (error, what) => {
    if (isConnectionError(error)) return
    const key = `${what}: ${describeError(error)}`
    const now = performance.now()
    if (now - (lastAt.get(key) ?? -silenceMs) < silenceMs) return
    if (lastAt.size > 100) lastAt.clear()
    lastAt.set(key, now)
    log.error({ error }, what)
  }
}
