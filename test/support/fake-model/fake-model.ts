import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { answer, openaiError, sendJson } from './answer.ts'
import { createGate } from './gate.ts'
import { createJournal } from './journal.ts'
import { replyOf } from './responder.ts'
import type { FakeReply, FakeRequest, FakeResponder, FakeScript, FakeSteps } from './types.ts'

/** A model server for tests: OpenAI's API on loopback, with scripted answers and failures on demand. */
export type FakeModel = AsyncDisposable & {
  port: number
  /** Up to and with `/v1`. */
  baseUrl: string
  /** All chat requests since the start or the last reset. */
  requests(role?: string): FakeRequest[]
  /** Resolves with the requests once there are `count` of them. Rejects when the signal aborts. */
  received(count: number, role?: string, signal?: AbortSignal): Promise<FakeRequest[]>
  /** How many replies wait for a release. */
  held(): number
  /** How many chat requests have neither got their whole reply nor gone away. */
  open(): number
  /** How many connections clients hold, idle ones too. */
  connections(): Promise<number>
  /** Lets the waiting replies go, all or those with this name, and says how many. */
  release(name?: string): number
  /** Sets a new script; the counts of requests go on. */
  script(script: FakeScript): void
  /** Forgets script, requests and counts, and drops waiting replies. */
  reset(): void
  close(): Promise<void>
}

const readBody = async (request: IncomingMessage): Promise<unknown> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const text = Buffer.concat(parts).toString('utf8')
  return text === '' ? {} : JSON.parse(text)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const startFakeModel = async (
  options: { script?: FakeScript; port?: number } = {},
): Promise<FakeModel> => {
  let script: FakeScript = options.script ?? {}
  const journal = createJournal()
  const gate = createGate()
  const over = new AbortController()

  const reset = (): void => {
    script = {}
    journal.clear()
    gate.drop()
  }
  const release = (name?: string): number => gate.release(name)

  const open = new Set<ServerResponse>()
  const chat = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    open.add(response)
    response.once('close', () => open.delete(response))
    const noted = journal.note(request.headers, await readBody(request))
    const reply = await replyOf(script, noted)
    if (reply.delayMs !== undefined) await sleep(reply.delayMs, undefined, { signal: over.signal })
    if (reply.hold !== undefined && reply.hold !== false) {
      await gate.wait(reply.hold === true ? '' : reply.hold, response)
    }
    if (!response.destroyed) await answer(reply, noted, response)
  }
  const listRequests = async (url: URL, response: ServerResponse): Promise<void> => {
    const role = url.searchParams.get('role') ?? undefined
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const count = Number(url.searchParams.get('at_least') ?? 0)
    sendJson(response, 200, await journal.received(count, role, AbortSignal.any([gone.signal, over.signal])))
  }
  const setScript = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request)
    if (!isObject(body) || !Object.values(body).every(Array.isArray)) {
      return sendJson(response, 400, openaiError('a script is {role: [reply, …]}', 'invalid_request_error'))
    }
    script = body as FakeSteps
    sendJson(response, 200, { roles: Object.keys(body) })
  }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://fake')
    switch (`${request.method} ${url.pathname}`) {
      case 'POST /v1/chat/completions':
        return chat(request, response)
      case 'GET /v1/models':
        return sendJson(response, 200, { object: 'list', data: [{ id: 'fake-model', object: 'model' }] })
      case 'POST /__script':
        return setScript(request, response)
      case 'GET /__requests':
        return listRequests(url, response)
      case 'POST /__release':
        return sendJson(response, 200, { released: release(url.searchParams.get('name') ?? undefined) })
      case 'GET /__held':
        return sendJson(response, 200, { held: gate.held() })
      case 'POST /__reset':
        reset()
        return sendJson(response, 200, {})
      default:
        return sendJson(response, 404, openaiError(`no ${url.pathname} here`, 'invalid_request_error'))
    }
  }
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else if (!response.destroyed) sendJson(response, 500, openaiError(String(error), 'fake_model_bug'))
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    over.abort()
    gate.drop()
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests: (role) => journal.all(role),
    received: (count, role, signal) => journal.received(count, role, signal ?? over.signal),
    held: () => gate.held(),
    open: () => open.size,
    connections: () => promisify(server.getConnections.bind(server))(),
    release,
    script: (next) => {
      script = next
    },
    reset,
    close,
    [Symbol.asyncDispose]: close,
  }
}

export type { FakeReply, FakeRequest, FakeResponder, FakeScript, FakeSteps }

const flag = (name: string): string | undefined => {
  const at = process.argv.indexOf(`--${name}`)
  return at === -1 ? undefined : process.argv[at + 1]
}

/** `node --import tsx test/support/fake-model/fake-model.ts --port 0 [--script file.json]` prints `{"port":N}` first. */
const main = async (): Promise<void> => {
  const file = flag('script')
  const script = file === undefined ? {} : (JSON.parse(await readFile(file, 'utf8')) as FakeSteps)
  const model = await startFakeModel({ script, port: Number(flag('port') ?? 0) })
  process.stdout.write(`${JSON.stringify({ port: model.port })}\n`)
  const stop = (): void => {
    model.close().catch(() => {})
  }
  process.once('SIGTERM', stop).once('SIGINT', stop)
}

if (process.argv[1] !== undefined && import.meta.filename === process.argv[1]) await main()
