import { exitCodes } from './errors.ts'

/** Calls `onFirst` at the first SIGTERM or SIGINT; a second one exits at once. Returns a function that cancels this. */
const listenForSignals = (exitCode: number, onFirst: (signal: NodeJS.Signals) => void): (() => void) => {
  let isStopping = false
  const handle = (signal: NodeJS.Signals): void => {
    if (isStopping) process.exit(exitCode)
    isStopping = true
    onFirst(signal)
  }
  process.on('SIGINT', handle).on('SIGTERM', handle)
  return () => void process.off('SIGINT', handle).off('SIGTERM', handle)
}

/** Ctrl-C while a run is followed: the first aborts `signal`, the second exits at once. */
export const listenForInterrupt = (): { signal: AbortSignal; stop(): void } => {
  const first = new AbortController()
  return { signal: first.signal, stop: listenForSignals(exitCodes.cancelled, () => first.abort()) }
}

/** Resolves with the name of the first SIGTERM or SIGINT. A second one exits at once. */
export const waitForStopSignal = (): Promise<NodeJS.Signals> =>
  new Promise((resolve) => void listenForSignals(exitCodes.failed, resolve))
