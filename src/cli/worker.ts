import { url as debuggerUrl } from 'node:inspector'
import { type Config, type Environment, readConfig } from '../infra/config/config.ts'
import { watchEventLoop } from '../infra/lib/watchdog.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { Runtime } from '../runtime/api.ts'
import { describeDatabase, describeModel, describeQueue, formatBanner } from './banner.ts'
import { exitCodes } from './errors.ts'
import { waitForStopSignal } from './interrupts.ts'
import { createLog } from './log.ts'
import { openTerminal } from './terminal.ts'

/** Less than the 15 s that a supervisor may grant. */
const stopTimeoutMs = 12_000
/** By then the leases have expired for certain, and other workers have the runs. */
const toStallLimitMs = (leaseMs: number): number => Math.max(leaseMs, 10_000)

type WorkerKind = {
  toTitle: (config: Config) => string
  start: (runtime: Runtime, config: Config) => unknown
  toRows: (config: Config) => readonly (readonly [string, string])[]
  /** Ends the process when its event loop stalls, so that a supervisor starts another one. */
  hasWatchdog: boolean
  stopMessage: string
}

/** `mason worker`: executes runs until SIGTERM or SIGINT, then hands back the unfinished ones. Returns the exit code. */
export const runWorker = (env: Environment, scrubber: Scrubber): Promise<number> =>
  runUntilStopped(env, scrubber, {
    toTitle: ({ concurrency }) => `Mason worker ${process.pid} takes ${concurrency} runs at once`,
    start: (runtime, { concurrency }) => runtime.startWorker({ concurrency }),
    toRows: (config) => [['queue', describeQueue(config)]],
    hasWatchdog: true,
    stopMessage: 'stopping: unfinished runs are handed back',
  })

/** Learns from ended runs until SIGTERM or SIGINT; every worker does so too. Returns the exit code. */
export const runMemoryWorker = (env: Environment, scrubber: Scrubber): Promise<number> =>
  runUntilStopped(env, scrubber, {
    toTitle: () => `Mason memory worker ${process.pid} learns from ended runs`,
    start: (runtime) => runtime.startMemoryWork(),
    toRows: () => [],
    hasWatchdog: false,
    stopMessage: 'stopping: other workers learn from the remaining runs',
  })

const runUntilStopped = async (env: Environment, scrubber: Scrubber, kind: WorkerKind): Promise<number> => {
  const stopped = waitForStopSignal()
  const config = readConfig(env, { role: 'worker' })
  const log = createLog(config.logLevel, process.stderr, scrubber)
  const { openRuntime } = await import('../runtime/open-runtime.ts')
  const runtime = await openRuntime(config, { log, scrubber })
  // a debugger stops the event loop for longer than the limit
  const isWatched = kind.hasWatchdog && debuggerUrl() === undefined
  using _watchdog = isWatched ? watchEventLoop(toStallLimitMs(config.leaseMs)) : undefined
  try {
    await kind.start(runtime, config)
    const terminal = openTerminal(env)
    const rows = [
      ['database', describeDatabase(config)],
      ...kind.toRows(config),
      ['model', describeModel(runtime.models)],
    ] as const
    terminal.out.write(formatBanner(kind.toTitle(config), rows, terminal))
    const signal = await stopped
    log.info({ signal }, kind.stopMessage)
  } finally {
    await runtime.close(stopTimeoutMs)
  }
  return exitCodes.done
}
