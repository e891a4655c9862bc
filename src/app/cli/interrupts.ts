import { exitCodes } from './errors.ts'

/** At SIGTERM or SIGINT while a command has not begun what it would have to give back, such as while it waits for a server. */
const exitAtOnce = (signal: NodeJS.Signals): void => {
  process.stderr.write(`mason: cancelled by ${signal}\n`)
  process.exit(exitCodes.cancelled)
}

/** Every signal ends the process at once, until a command listens for itself. */
export const exitOnSignals = (): void => void process.on('SIGINT', exitAtOnce).on('SIGTERM', exitAtOnce)

/** Calls `onFirst` at the first SIGTERM or SIGINT; a second one exits at once. Returns a function that cancels this. */
const listenForSignals = (exitCode: number, onFirst: (signal: NodeJS.Signals) => void): (() => void) => {
  let isStopping = false
  const handle = (signal: NodeJS.Signals): void => {
    if (isStopping) process.exit(exitCode)
    isStopping = true
    onFirst(signal)
  }
  process.off('SIGINT', exitAtOnce).off('SIGTERM', exitAtOnce)
  process.on('SIGINT', handle).on('SIGTERM', handle)
  return () => void process.off('SIGINT', handle).off('SIGTERM', handle)
}

/** Ctrl-C while a run is followed: the first aborts `signal`, with `reason`, the second exits at once. */
export const listenForInterrupt = (reason?: Error): { signal: AbortSignal; stop(): void } => {
  const first = new AbortController()
  return { signal: first.signal, stop: listenForSignals(exitCodes.cancelled, () => first.abort(reason)) }
}

/** Resolves with the name of the first SIGTERM or SIGINT. A second one exits at once. */
export const waitForStopSignal = (): Promise<NodeJS.Signals> =>
  new Promise((resolve) => void listenForSignals(exitCodes.failed, resolve))
