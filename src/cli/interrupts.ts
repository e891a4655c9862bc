import { exitCodes } from './failure.ts'

/** Ctrl-C while a run is followed: the first asks for the end, the second quits at once. */
export const onInterrupt = (): { signal: AbortSignal; stop(): void } => {
  const first = new AbortController()
  const handle = (): void => {
    if (first.signal.aborted) process.exit(exitCodes.cancelled)
    first.abort()
  }
  process.on('SIGINT', handle).on('SIGTERM', handle)
  return { signal: first.signal, stop: () => void process.off('SIGINT', handle).off('SIGTERM', handle) }
}

/** Resolves at the first SIGTERM or SIGINT, with its name. A second one quits at once. */
export const untilStopped = (): Promise<NodeJS.Signals> =>
  new Promise((resolve) => {
    let stopping = false
    const handle = (signal: NodeJS.Signals): void => {
      if (stopping) process.exit(1)
      stopping = true
      resolve(signal)
    }
    process.on('SIGINT', handle).on('SIGTERM', handle)
  })
