import { type Environment, readConfig } from '../../../infra/config/config.ts'
import { toIssuer } from '../../../infra/config/issuer.ts'
import { watchEventLoop } from '../../../infra/lib/watchdog.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { addSettingSecrets } from '../../../infra/secrets/setting-secrets.ts'
import { listWeakSecrets } from '../../../infra/secrets/weak-secrets.ts'
import { describeDatabase, formatBanner } from '../banner.ts'
import { exitCodes } from '../errors.ts'
import { waitForStopSignal } from '../interrupts.ts'
import { createLog } from '../log.ts'
import { openTerminal } from '../terminal.ts'

/** Less than the 15 s that a supervisor may grant. */
const stopTimeoutMs = 12_000

/** `mason payments`: moves money for orders until SIGTERM or SIGINT; lets what is being sent end. Returns the exit code. */
export const runExecutor = async (env: Environment, scrubber: Scrubber): Promise<number> => {
  const config = readConfig(env, { role: 'payments' })
  addSettingSecrets(config, scrubber)
  const log = createLog(config.logLevel, process.stderr, scrubber)
  for (const { problem, remedy } of listWeakSecrets(config)) log.warn({ remedy }, problem)
  const { openExecutor } = await import('../../payments.ts')
  const executor = await openExecutor(config, { log, scrubber })
  const stopped = waitForStopSignal()
  using _watchdog = watchEventLoop(Math.max(config.leaseMs, 10_000))
  try {
    const { openMetricsServer } = await import('../../http/metrics-server.ts')
    const { metricsPort: port, http } = config
    await using _metrics =
      port === undefined ? undefined : await openMetricsServer(executor, { ...http, port }, () => true)
    const terminal = openTerminal(env)
    const rows = [
      ['database', describeDatabase(config)],
      ['receipts', `signed as ${toIssuer(config)}`],
    ] as const
    terminal.out.write(formatBanner(`Mason payments ${process.pid} carries out orders`, rows, terminal))
    log.info({ issuer: toIssuer(config) }, 'the executor of payments is ready')
    const signal = await stopped
    log.info({ signal }, 'stopping: what is being sent ends, other executors take the rest')
  } finally {
    await executor.close(stopTimeoutMs)
  }
  return exitCodes.done
}
