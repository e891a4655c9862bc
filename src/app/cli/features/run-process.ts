import { loadKind } from '../../../features/definition-files.ts'
import type { ProcessDefinition } from '../../../features/definitions.ts'
import { findService } from '../../../features/load-features.ts'
import type { Environment } from '../../../infra/config/config.ts'
import { watchEventLoop } from '../../../infra/lib/watchdog.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { toSettingsError } from '../../../state/errors.ts'
import { featureSources } from '../../features.generated.ts'
import { readConfig } from '../../read-config.ts'
import { addSettingSecrets } from '../../setting-secrets.ts'
import { describeDatabase, formatBanner } from '../banner.ts'
import { exitCodes } from '../errors.ts'
import { waitForStopSignal } from '../interrupts.ts'
import { createLog } from '../log.ts'
import { openTerminal } from '../terminal.ts'
import { listWeakSecrets } from '../weak-secrets.ts'

/** Less than the 15 s that a supervisor may grant. */
const stopTimeoutMs = 12_000

const loadProcess = async (name: string): Promise<ProcessDefinition> => {
  const found = (await loadKind(featureSources, 'process')).find(({ definition }) => definition.name === name)
  if (found) return found.definition
  throw toSettingsError(
    `no feature has the process "${name}"`,
    'add the feature that has it: `mason features` lists those of this build',
  )
}

/** Runs a process of a feature until SIGTERM or SIGINT. Returns the exit code. */
export const runProcess = async (name: string, env: Environment, scrubber: Scrubber): Promise<number> => {
  const { role, open } = await loadProcess(name)
  const config = readConfig(env, { role })
  addSettingSecrets(config, scrubber)
  const log = createLog(config.logLevel, process.stderr, scrubber)
  for (const { problem, remedy } of listWeakSecrets(config)) log.warn({ remedy }, problem)
  const running = await open(config, { log, scrubber, find: (ref) => findService(featureSources, ref) })
  const stopped = waitForStopSignal()
  using _watchdog = watchEventLoop(Math.max(config.leaseMs, 10_000))
  try {
    const { openMetricsServer } = await import('../../http/metrics-server.ts')
    const { metricsPort: port, http } = config
    await using _metrics =
      port === undefined ? undefined : await openMetricsServer(running, { ...http, port }, () => true)
    const terminal = openTerminal(env)
    const rows = [['database', describeDatabase(config)], ...running.rows] as const
    terminal.out.write(formatBanner(`Mason ${name} ${process.pid} ${running.does}`, rows, terminal))
    log.info(running.readyFields, running.readyMessage)
    const signal = await stopped
    log.info({ signal }, running.stopMessage)
  } finally {
    await running.close(stopTimeoutMs)
  }
  return exitCodes.done
}
