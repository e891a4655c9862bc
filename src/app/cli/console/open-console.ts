import { spawn } from 'node:child_process'
import { createHttp } from '../../../client/http.ts'
import type { Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { MasonError } from '../../../state/errors.ts'
import { exitCodes } from '../errors.ts'
import { findTarget, readTargetConfig } from '../gateway.ts'
import { serverRemedies } from '../http-gateway.ts'
import type { AdminTarget } from '../models/admin-client.ts'

/** The options of `mason console`. */
export type ConsoleFlags = AdminTarget & { open: boolean }

/**
 * `mason console`: prints the address of the console, with a code that signs in once, and opens it in a browser where a person
 * is at the terminal. The code is in the fragment, which browsers send to no server. Returns the exit code.
 */
export const openConsole = async (
  flags: ConsoleFlags,
  env: Environment,
  scrubber: Scrubber,
): Promise<number> => {
  const config = readTargetConfig(flags, env, 'models')
  const { url, token } = await findTarget(config)
  if (url === null)
    throw new MasonError('server_unreachable', 'no server is running on these settings', {
      remedy: 'start `mason serve`, or name a server with --url or MASON_URL',
    })
  if (token) scrubber.add(token)
  const http = createHttp({ url, token, remedies: serverRemedies() })
  const { auth } = await http.json<{ auth: string }>('GET', '/console/session', { repeatable: true })
  const code = auth === 'off' ? null : (await http.json<{ code: string }>('POST', '/console/codes')).code
  const page = `${toBase(config.publicUrl ?? url)}/console${code === null ? '' : `#code=${code}`}`
  process.stdout.write(`${page}\n`)
  process.stderr.write(
    code === null
      ? 'auth is off: the console needs no sign-in\n'
      : 'this address signs in once, within a minute: open it yourself, and hand it to no one\n',
  )
  if (flags.open && process.stdout.isTTY) openInBrowser(page)
  return exitCodes.done
}

const openers: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Where there is no browser the address is printed all the same. */
const openInBrowser = (page: string): void => {
  const [command, ...before] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...before, page], { stdio: 'ignore', detached: true })
  child.on('error', () => undefined)
  child.unref()
}

/** An address without the slash at its end, which settings may have. */
const toBase = (url: string): string => (url.endsWith('/') ? url.slice(0, -1) : url)
