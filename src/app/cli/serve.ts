import { url as debuggerUrl } from 'node:inspector'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Config, Environment } from '../../infra/config/config.ts'
import { announceServer } from '../../infra/database/folder-lock.ts'
import { settlesWithin } from '../../infra/lib/timeouts.ts'
import { watchEventLoop } from '../../infra/lib/watchdog.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import type { Project } from '../../project/load-project.ts'
import { MasonError } from '../../state/errors.ts'
import type { Runtime } from '../api.ts'
import { readConfig } from '../read-config.ts'
import { addAdminToken, type ConfigWithAdminToken } from './admin-token.ts'
import { describeDatabase, describeModel, describeQueue, formatBanner } from './banner.ts'
import { exitCodes } from './errors.ts'
import { waitForStopSignal } from './interrupts.ts'
import { createLog } from './log.ts'
import { openTerminal } from './terminal.ts'
import { listWeakSecrets } from './weak-secrets.ts'

/** The processes that run until they are stopped: the server, the worker and the memory worker. */

/** The options of `mason serve`. */
export type ServeFlags = WorkerFlags & { port?: string; host?: string; role: 'all' | 'api' | 'worker' }

/** The options of `mason worker`. */
export type WorkerFlags = { migrate?: boolean }

/** In total less than the 15 s that a supervisor may grant. */
const stopTimeoutsMs = { drain: 3_000, app: 4_000, runtime: 9_000 }
/** The same for a process without a server. */
const workerStopTimeoutMs = 12_000
/** By then the leases have expired for certain, and other workers have the runs. */
const toStallLimitMs = (leaseMs: number): number => Math.max(leaseMs, 10_000)

/** What each process gets. */
type ProcessParts = [env: Environment, scrubber: Scrubber, setup: Project['setup']]

type Listener = { port: number; close(): Promise<void> }

type ProcessKind = WorkerFlags & {
  setup: Project['setup']
  /** Opens what takes requests; it is closed before the runtime. */
  listen?: (runtime: Runtime, log: Logger) => Promise<Listener>
  start: (runtime: Runtime) => unknown
  toBanner: (runtime: Runtime, port: number) => [title: string, rows: (readonly [string, string])[]]
  stopMessage: string
  stopTimeoutMs: number
}

/** Opens a runtime and works with it until SIGTERM or SIGINT. */
const runUntilStopped = async (
  config: Config,
  env: Environment,
  scrubber: Scrubber,
  kind: ProcessKind,
): Promise<number> => {
  const log = createLog(config.logLevel, process.stderr, scrubber)
  for (const { problem, remedy } of listWeakSecrets(config)) log.warn({ remedy }, problem)
  // loaded last, so that wrong settings are reported at once
  const { openRuntime } = await import('../open-runtime.ts')
  const runtime = await openRuntime(config, {
    log,
    scrubber,
    ...(kind.migrate && { migrate: true }),
    ...(kind.setup && { setup: kind.setup }),
  })
  // until here a signal ends the process: it holds no run
  const stopped = waitForStopSignal()
  // ends the process when its event loop stalls, so that a supervisor starts another one; a debugger stalls it for longer
  using _watchdog = debuggerUrl() === undefined ? watchEventLoop(toStallLimitMs(config.leaseMs)) : undefined
  try {
    let isWorking = false
    await using metrics = await openMetrics(config, runtime, () => isWorking)
    const app = await kind.listen?.(runtime, log)
    await using _closing = app && closeInTime(app)
    const start = async (): Promise<NodeJS.Signals> => {
      await kind.start(runtime)
      isWorking = true
      const terminal = openTerminal(env)
      const [title, rows] = kind.toBanner(runtime, app?.port ?? 0)
      const metricsRow = metrics ? [['metrics', `${toLocalUrl(config, metrics.port)}/metrics`] as const] : []
      terminal.out.write(formatBanner(title, [...rows, ...metricsRow], terminal))
      return stopped
    }
    const signal = await Promise.race([start(), stopped])
    isWorking = false
    log.info({ signal }, kind.stopMessage)
  } finally {
    await runtime.close(kind.stopTimeoutMs)
  }
  return exitCodes.done
}

/** `mason serve`: runs the API, a worker or both until SIGTERM or SIGINT. Returns the exit code. */
export const runServer = async (
  flags: ServeFlags,
  ...[env, scrubber, setup]: ProcessParts
): Promise<number> => {
  const { role } = flags
  const merged = {
    ...env,
    ...(flags.port !== undefined && { PORT: flags.port }),
    ...(flags.host !== undefined && { HOST: flags.host }),
  }
  if (role === 'worker') return runWorker(flags, merged, scrubber, setup)
  const secrets = await addAdminToken(readConfig(merged, { role: role === 'api' ? 'api' : 'serve' }))
  const { config } = secrets
  return runUntilStopped(config, env, scrubber, {
    setup,
    ...(flags.migrate && { migrate: true }),
    listen: (runtime, log) => openServer(runtime, config, log),
    async start(runtime) {
      if (role !== 'all') return
      if (config.database.kind !== 'postgres') await runtime.startPayments()
      await runtime.startWorker({ concurrency: config.concurrency })
    },
    toBanner: (runtime, port) => buildServerBanner(port, role, secrets, runtime),
    stopMessage: 'stopping: no new requests are accepted; unfinished runs are handed back',
    stopTimeoutMs: stopTimeoutsMs.runtime,
  })
}

/** `mason worker`: executes runs until SIGTERM or SIGINT, then hands back the unfinished ones. Returns the exit code. */
export const runWorker = async (
  { migrate = false }: WorkerFlags,
  ...[env, scrubber, setup]: ProcessParts
): Promise<number> => {
  const config = readConfig(env, { role: 'worker' })
  return runUntilStopped(config, env, scrubber, {
    setup,
    migrate,
    start: (runtime) => runtime.startWorker(),
    toBanner: (runtime) => [
      `Mason worker ${process.pid} takes ${config.maxRuns} runs at once`,
      describeParts(config, runtime),
    ],
    stopMessage: 'stopping: unfinished runs are handed back',
    stopTimeoutMs: workerStopTimeoutMs,
  })
}

/** `mason memory-worker`: learns from ended runs until SIGTERM or SIGINT, as every worker does unless MASON_LEARNING is off. Returns the exit code. */
export const runMemoryWorker = async (...[env, scrubber, setup]: ProcessParts): Promise<number> => {
  const config = readConfig(env, { role: 'memory' })
  return runUntilStopped(config, env, scrubber, {
    setup,
    start: (runtime) => runtime.startMemoryWork(),
    toBanner: (runtime) => [
      `Mason memory worker ${process.pid} learns from ended runs`,
      [
        ['database', describeDatabase(config)],
        ['model', describeModel(runtime.models)],
      ],
    ],
    stopMessage: 'stopping: other workers learn from the remaining runs',
    stopTimeoutMs: workerStopTimeoutMs,
  })
}

const closeInTime = (app: Listener): AsyncDisposable => ({
  async [Symbol.asyncDispose]() {
    const closing = app.close()
    if (await settlesWithin(closing, stopTimeoutsMs.app)) await closing
  },
})

/** The port for probes and Prometheus, where the settings name one. */
const openMetrics = async (
  { http: { host }, metricsPort }: Config,
  runtime: Runtime,
  isReady: () => boolean,
) => {
  if (metricsPort === undefined) return
  const { openMetricsServer } = await import('../http/metrics-server.ts')
  const address = { host, port: metricsPort }
  return openMetricsServer(runtime, address, isReady).catch((error: unknown) => {
    throw toListenError(error, address, 'MASON_METRICS_PORT')
  })
}

const openServer = async (runtime: Runtime, config: Config, logger: Logger) => {
  const { createApp } = await import('../http/app.ts')
  const { auth, access, adminToken, http, bodyMemory, maxWaitMs } = config
  const app = await createApp({
    runtime,
    auth,
    ...access,
    ...(adminToken !== null && { adminToken }),
    logger,
    drainMs: stopTimeoutsMs.drain,
    bodyMemory,
    maxWaitMs,
  })
  try {
    await app.listen(http)
  } catch (error) {
    await app.close()
    throw toListenError(error, http)
  }
  const { port } = app.server.address() as AddressInfo
  if (config.database.kind === 'embedded')
    await announceServer(config.database.dataDir, toLocalUrl(config, port))
  return { port, close: () => app.close() }
}

const toListenError = (
  error: unknown,
  { host, port }: Config['http'],
  setting = '--port or PORT',
): unknown => {
  const remedies: Record<string, string> = {
    EADDRINUSE: `stop the process on that port, or choose another port with ${setting} (0 picks a free one)`,
    EACCES: `choose a port above 1023 with ${setting}`,
    EADDRNOTAVAIL: 'set --host or HOST to an address of this machine',
    ENOTFOUND: 'set --host or HOST to an address of this machine',
  }
  const { code, message } = error as NodeJS.ErrnoException
  const remedy = remedies[code ?? '']
  if (!remedy) return error
  const problem = `cannot listen on ${host} port ${port}: ${message}`
  return new MasonError('internal', problem, { remedy, cause: error })
}

/** The URL that a browser on this machine can open. */
const toLocalUrl = ({ http: { host } }: Config, port: number): string => {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}

const describeParts = (config: Config, { models }: Runtime): (readonly [string, string])[] => [
  ['database', describeDatabase(config)],
  ['queue', describeQueue(config)],
  ['model', describeModel(models)],
]

const buildServerBanner = (
  port: number,
  role: 'all' | 'api',
  { config, adminToken }: ConfigWithAdminToken,
  runtime: Runtime,
): ReturnType<ProcessKind['toBanner']> => {
  const url = toLocalUrl(config, port)
  return [
    `Mason listens on ${url}`,
    [
      ['docs', `${url}/docs`],
      ...(config.access.console === 'open' ? [['console', `${url}/console`] as const] : []),
      ...describeParts(config, runtime),
      [
        'worker',
        role === 'all' ? `in this process, up to ${config.maxRuns} runs at once` : 'none in this process',
      ],
      ['auth', describeAuth(config, adminToken)],
    ],
  ]
}

const describeAuth = ({ auth }: Config, adminToken: ConfigWithAdminToken['adminToken']): string => {
  const token = adminToken?.created
    ? `admin token, shown only this once: ${adminToken.value} (stored in ${adminToken.path})`
    : adminToken
      ? `the admin token is in ${adminToken.path}`
      : 'the admin token is MASON_ADMIN_TOKEN'
  return auth === 'off' ? 'off: every client that reaches this address has full access' : `required; ${token}`
}
