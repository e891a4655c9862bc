import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { type Config, type Environment, readConfig } from '../infra/config/config.ts'
import { settlesWithin } from '../infra/lib/timeouts.ts'
import { addAdminToken, type ConfigWithAdminToken } from '../infra/secrets/admin-token.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { Runtime } from '../runtime/api.ts'
import { MasonError } from '../state/errors.ts'
import { describeDatabase, describeModel, describeQueue, formatBanner } from './banner.ts'
import { exitCodes } from './errors.ts'
import { waitForStopSignal } from './interrupts.ts'
import { createLog } from './log.ts'
import { openTerminal } from './terminal.ts'

/** The options of `mason serve`. */
export type ServeFlags = { port?: string; host?: string; role: 'all' | 'api' | 'worker' }

/** In total less than the 15 s that a supervisor may grant. */
const stopTimeoutsMs = { drain: 3_000, app: 4_000, runtime: 9_000 }

/** `mason serve`: runs the API, a worker or both until SIGTERM or SIGINT. Returns the exit code. */
export const runServer = async (flags: ServeFlags, env: Environment, scrubber: Scrubber): Promise<number> => {
  const merged = {
    ...env,
    ...(flags.port !== undefined && { PORT: flags.port }),
    ...(flags.host !== undefined && { HOST: flags.host }),
  }
  if (flags.role === 'worker') return (await import('./worker.ts')).runWorker(merged, scrubber)
  const stopped = waitForStopSignal()
  const secrets = await addAdminToken(readConfig(merged, { role: flags.role === 'api' ? 'api' : 'serve' }))
  const { config } = secrets
  const log = createLog(config.logLevel, process.stderr, scrubber)
  // loaded last, so that wrong settings are reported at once
  const { openRuntime } = await import('../runtime/open-runtime.ts')
  const runtime = await openRuntime(config, { log, scrubber })
  try {
    const app = await openServer(runtime, config, log)
    try {
      if (flags.role === 'all') await runtime.startWorker({ concurrency: config.concurrency })
      const terminal = openTerminal(env)
      terminal.out.write(formatBanner(...buildBanner(app.port, flags.role, secrets, runtime), terminal))
      const signal = await stopped
      log.info({ signal }, 'stopping: no new requests are accepted; unfinished runs are handed back')
    } finally {
      const closing = app.close()
      if (await settlesWithin(closing, stopTimeoutsMs.app)) await closing
    }
  } finally {
    await runtime.close(stopTimeoutsMs.runtime)
  }
  return exitCodes.done
}

const openServer = async (runtime: Runtime, config: Config, logger: Logger) => {
  const { createApp } = await import('../server/app.ts')
  const { auth, adminToken, http } = config
  const app = await createApp({
    runtime,
    auth,
    ...(adminToken !== null && { adminToken }),
    logger,
    drainMs: stopTimeoutsMs.drain,
  })
  try {
    await app.listen(http)
  } catch (error) {
    await app.close()
    throw toListenError(error, http)
  }
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

const toListenError = (error: unknown, { host, port }: Config['http']): unknown => {
  const remedies: Record<string, string> = {
    EADDRINUSE:
      'stop the process on that port, or choose another port with --port or PORT (0 picks a free one)',
    EACCES: 'choose a port above 1023 with --port or PORT',
    EADDRNOTAVAIL: 'set --host or HOST to an address of this machine',
    ENOTFOUND: 'set --host or HOST to an address of this machine',
  }
  const { code, message } = error as NodeJS.ErrnoException
  const remedy = remedies[code ?? '']
  return remedy
    ? new MasonError('internal', `cannot listen on ${host} port ${port}: ${message}`, {
        remedy,
        cause: error,
      })
    : error
}

/** The URL that a browser on this machine can open. */
const toLocalUrl = ({ http: { host } }: Config, port: number): string => {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}

const buildBanner = (
  port: number,
  role: 'all' | 'api',
  { config, adminToken }: ConfigWithAdminToken,
  runtime: Runtime,
): [string, (readonly [string, string])[]] => {
  const url = toLocalUrl(config, port)
  return [
    `Mason listens on ${url}`,
    [
      ['docs', `${url}/docs`],
      ['database', describeDatabase(config)],
      ['queue', describeQueue(config)],
      ['model', describeModel(runtime.models)],
      [
        'worker',
        role === 'all' ? `in this process, up to ${config.concurrency} runs at once` : 'none in this process',
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
