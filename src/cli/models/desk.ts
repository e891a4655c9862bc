import type { Config, Environment } from '../../infra/config.ts'
import { readConfig } from '../../infra/config.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import { isMasonError, MasonError } from '../../state/errors.ts'
import { problemOf, unreachable } from '../http.ts'
import { createNotes } from '../log.ts'

export type Target = { url?: string; token?: string }

/** The admin API, of a server or of the runtime in this process: the same paths, checks and errors. */
export type Desk = {
  call(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown): Promise<unknown>
  /** All pages of a list. */
  all<Item>(path: string): Promise<Item[]>
}

type Send = (method: string, path: string, body: string | null) => Promise<Response>
type Opened = { send: Send; name: string; close(): Promise<void> }

const tokenRemedy =
  'give the admin token of that server (MASON_ADMIN_TOKEN there) with --token or MASON_TOKEN'

/** Opens it as the flags and settings say, and lets go of it however the work ends. */
export const withDesk = async (
  flags: Target,
  env: Environment,
  scrubber: Scrubber,
  work: (desk: Desk) => Promise<number>,
): Promise<number> => {
  const given = {
    ...env,
    ...(flags.url !== undefined && { MASON_URL: flags.url }),
    ...(flags.token !== undefined && { MASON_TOKEN: flags.token }),
    LOG_LEVEL: env.LOG_LEVEL || 'warn',
  }
  const config = readConfig(given, { role: given.MASON_URL ? 'client' : 'run' })
  const { url, token } = config.client
  if (token) scrubber.add(token)
  const { send, name, close } = url === null ? await openHere(config, scrubber) : openThere(url, token)
  try {
    return await work(createDesk(send, name))
  } finally {
    await close()
  }
}

const createDesk = (send: Send, name: string): Desk => {
  const call: Desk['call'] = async (method, path, body) => {
    const response = await send(method, path, body === undefined ? null : JSON.stringify(body))
    if (!response.ok) throw await problemOf(response, name, tokenRemedy)
    return response.json()
  }
  return {
    call,
    async all<Item>(path: string) {
      const items: Item[] = []
      let cursor: string | null = null
      do {
        const query: string =
          cursor === null ? '?limit=200' : `?limit=200&cursor=${encodeURIComponent(cursor)}`
        const page = (await call('GET', path + query)) as { data: Item[]; next_cursor: string | null }
        items.push(...page.data)
        cursor = page.next_cursor
      } while (cursor !== null)
      return items
    },
  }
}

const json = { 'Content-Type': 'application/json' }
/** A test of a model may take as long as its endpoint allows. */
const patienceMs = 3_700_000

const openThere = (url: string, token: string | null): Opened => {
  const base = url.replace(/\/+$/, '')
  return {
    name: base,
    send: (method, path, body) =>
      fetch(base + path, {
        method,
        headers: { ...(token && { Authorization: `Bearer ${token}` }), ...(body !== null && json) },
        body,
        signal: AbortSignal.timeout(patienceMs),
      }).catch((error: unknown) => {
        throw unreachable(base, error)
      }),
    close: async () => {},
  }
}

/** The server's own routes, without a port. */
const openHere = async (config: Config, scrubber: Scrubber): Promise<Opened> => {
  const log = createNotes(config.logLevel, (line) => process.stderr.write(`${line}\n`), scrubber)
  const [{ openRuntime }, { createApp }] = await Promise.all([
    import('../../runtime.ts'),
    import('../../server/app.ts'),
  ])
  const runtime = await openRuntime(config, { log, scrubber }).catch(explainLock)
  const app = await createApp({ runtime, auth: 'off' })
  return {
    name: 'the runtime here',
    async send(method, path, body) {
      const answer = await app.inject({
        method: method as 'GET',
        url: path,
        ...(body !== null && { headers: json, payload: body }),
      })
      return new Response(answer.payload, { status: answer.statusCode })
    },
    async close() {
      await app.close()
      await runtime.close(10_000)
    },
  }
}

const explainLock = (error: unknown): never => {
  if (!isMasonError(error, 'data_dir_locked')) throw error
  throw new MasonError('data_dir_locked', error.message, {
    remedy:
      'if that is `mason serve`, add --url http://127.0.0.1:8080 and --token with the admin token it keeps in DATA_DIR; else stop that process',
    detail: error.detail,
    cause: error,
  })
}
