import { exitCodes } from './errors.ts'

/** Ctrl-C while a run is followed: the first aborts `signal`, the second exits at once. */
export const listenForInterrupt = (): { signal: AbortSignal; stop(): void } => {
  const first = new AbortController()
  const handle = (): void => {
    if (first.signal.aborted) process.exit(exitCodes.cancelled)
    first.abort()
  }
  process.on('SIGINT', handle).on('SIGTERM', handle)
  return { signal: first.signal, stop: () => void process.off('SIGINT', handle).off('SIGTERM', handle) }
}

/** Resolves with the name of the first SIGTERM or SIGINT. A second one exits at once. */
export const waitForStopSignal = (): Promise<NodeJS.Signals> =>
  new Promise((resolve) => {
    let stopping = false
    const handle = (signal: NodeJS.Signals): void => {
      if (stopping) process.exit(1)
      stopping = true
      resolve(signal)
    }
    process.on('SIGINT', handle).on('SIGTERM', handle)
  })
