import { type Environment, readConfig } from '../infra/config.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import { banner, databaseText, modelText } from './banner.ts'
import { exitCodes } from './failure.ts'
import { untilStopped } from './interrupts.ts'
import { createLog } from './log.ts'
import { openTerminal } from './terminal.ts'

/** Less than the 15 s that a supervisor may grant. */
const stopMs = 12_000

/** Learns from ended runs until SIGTERM or SIGINT; every worker does so too. Gives the exit code. */
export const learn = async (env: Environment, scrubber: Scrubber): Promise<number> => {
  const stopped = untilStopped()
  const config = readConfig(env, { role: 'worker' })
  const log = createLog(config.logLevel, process.stderr, scrubber)
  const { openRuntime } = await import('../runtime.ts')
  const runtime = await openRuntime(config, { log, scrubber })
  try {
    runtime.startMemoryWork()
    const terminal = openTerminal(env)
    const rows = [
      ['database', databaseText(config)],
      ['model', modelText(runtime.models)],
    ] as const
    terminal.out.write(banner(`Mason memory worker ${process.pid} learns from ended runs`, rows, terminal))
    const signal = await stopped
    log.info({ signal }, 'stopping: what is not learned yet is left to others')
  } finally {
    await runtime.close(stopMs)
  }
  return exitCodes.done
}
