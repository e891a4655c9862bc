import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { type Config, type Environment, readConfig } from '../infra/config.ts'
import { type LocalSecrets, withAdminToken } from '../infra/local-secrets.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { Runtime } from '../runtime-api.ts'
import { MasonError } from '../state/errors.ts'
import { banner, databaseText, modelText, queueText } from './banner.ts'
import { exitCodes } from './failure.ts'
import { untilStopped } from './interrupts.ts'
import { createLog } from './log.ts'
import { openTerminal } from './terminal.ts'

export type ServeFlags = { port?: string; host?: string; role: 'all' | 'api' | 'worker' }

/** Together less than the 15 s that a supervisor may grant. */
const stopMs = { drain: 3_000, app: 4_000, runtime: 9_000 }

/** `mason serve`: API, worker or both until SIGTERM or SIGINT. Gives the exit code. */
export const serve = async (flags: ServeFlags, env: Environment, scrubber: Scrubber): Promise<number> => {
  const given = {
    ...env,
    ...(flags.port !== undefined && { PORT: flags.port }),
    ...(flags.host !== undefined && { HOST: flags.host }),
  }
  if (flags.role === 'worker') return (await import('./worker.ts')).work(given, scrubber)
  const stopped = untilStopped()
  const secrets = await withAdminToken(readConfig(given, { role: flags.role === 'api' ? 'api' : 'serve' }))
  const { config } = secrets
  const log = createLog(config.logLevel, process.stderr, scrubber)
  // only now: faulty settings are told at once
  const { openRuntime } = await import('../runtime.ts')
  const runtime = await openRuntime(config, { log, scrubber })
  try {
    const app = await openDoor(runtime, config, log)
    try {
      if (flags.role === 'all') await runtime.startWorker({ concurrency: config.concurrency })
      const terminal = openTerminal(env)
      terminal.out.write(banner(...picture(app.port, flags.role, secrets, runtime), terminal))
      const signal = await stopped
      log.info({ signal }, 'stopping: no new requests; running work is handed back')
    } finally {
      await within(app.close(), stopMs.app)
    }
  } finally {
    await runtime.close(stopMs.runtime)
  }
  return exitCodes.done
}

const openDoor = async (runtime: Runtime, config: Config, logger: Logger) => {
  const { createApp } = await import('../server/app.ts')
  const { auth, adminToken, http } = config
  const app = await createApp({
    runtime,
    auth,
    ...(adminToken !== null && { adminToken }),
    logger,
    drainMs: stopMs.drain,
  })
  try {
    await app.listen(http)
  } catch (error) {
    await app.close()
    throw explainListen(error, http)
  }
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

const explainListen = (error: unknown, { host, port }: Config['http']): unknown => {
  const remedies: Record<string, string> = {
    EADDRINUSE: 'stop what listens there, or choose another with --port or PORT (0: any free one)',
    EACCES: 'choose a port above 1023 with --port or PORT',
    EADDRNOTAVAIL: 'give an address of this machine with --host or HOST',
    ENOTFOUND: 'give an address of this machine with --host or HOST',
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

const within = async (work: Promise<unknown>, ms: number): Promise<void> => {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), ms)
  await Promise.race([work, new Promise((resolve) => late.signal.addEventListener('abort', resolve))])
  clearTimeout(timer)
}

/** The name by which a browser on this machine reaches it. */
const urlOf = ({ http: { host } }: Config, port: number): string => {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}

const picture = (
  port: number,
  role: 'all' | 'api',
  { config, adminToken }: LocalSecrets,
  runtime: Runtime,
): [string, (readonly [string, string])[]] => {
  const url = urlOf(config, port)
  return [
    `Mason listens on ${url}`,
    [
      ['docs', `${url}/docs`],
      ['database', databaseText(config)],
      ['queue', queueText(config)],
      ['model', modelText(runtime.models)],
      [
        'worker',
        role === 'all' ? `in this process, ${config.concurrency} runs at once` : 'none in this process',
      ],
      ['auth', authText(config, adminToken)],
    ],
  ]
}

const authText = ({ auth }: Config, adminToken: LocalSecrets['adminToken']): string => {
  const token = adminToken?.made
    ? `admin token, shown only this once: ${adminToken.value} (kept in ${adminToken.path})`
    : adminToken
      ? `the admin token is in ${adminToken.path}`
      : 'the admin token is MASON_ADMIN_TOKEN'
  return auth === 'off' ? 'off: whoever reaches this address may do anything' : `required; ${token}`
}
