import { url as debuggerUrl } from 'node:inspector'
import { type Environment, readConfig } from '../infra/config.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import { watchEventLoop } from '../infra/watchdog.ts'
import { banner, databaseText, modelText, queueText } from './banner.ts'
import { exitCodes } from './failure.ts'
import { untilStopped } from './interrupts.ts'
import { createLog } from './log.ts'
import { openTerminal } from './terminal.ts'

/** Less than the 15 s that a supervisor may grant. */
const stopMs = 12_000
/** By then its leases are gone for certain, and others have its runs. */
const stillFor = (leaseMs: number): number => Math.max(leaseMs, 10_000)

/** `mason worker`: works on runs until SIGTERM or SIGINT, then hands back what it has. Gives the exit code. */
export const work = async (env: Environment, scrubber: Scrubber): Promise<number> => {
  const stopped = untilStopped()
  const config = readConfig(env, { role: 'worker' })
  const log = createLog(config.logLevel, process.stderr, scrubber)
  const { openRuntime } = await import('../runtime.ts')
  const runtime = await openRuntime(config, { log, scrubber })
  // somebody who steps through the code stops the event loop for longer
  using _watchdog = debuggerUrl() === undefined ? watchEventLoop(stillFor(config.leaseMs)) : undefined
  try {
    await runtime.startWorker({ concurrency: config.concurrency })
    const terminal = openTerminal(env)
    const rows = [
      ['database', databaseText(config)],
      ['queue', queueText(config)],
      ['model', modelText(runtime.models)],
    ] as const
    const title = `Mason worker ${process.pid} takes ${config.concurrency} runs at once`
    terminal.out.write(banner(title, rows, terminal))
    const signal = await stopped
    log.info({ signal }, 'stopping: running work is handed back')
  } finally {
    await runtime.close(stopMs)
  }
  return exitCodes.done
}
