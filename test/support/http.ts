import type { AddressInfo } from 'node:net'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { FastifyInstance } from 'fastify'
import { type AppOptions, createApp } from '../../src/app/http/app.ts'

/** A request of a test. `json` is sent as JSON, `raw` unchanged. */
export type Call = {
  json?: unknown
  raw?: string | Uint8Array
  headers?: Record<string, string>
  token?: string
  signal?: AbortSignal
}

/** A whole response; `body` is its JSON, or null when it is not JSON. */
// biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
export type Reply = { status: number; headers: Headers; text: string; body: any }

export type TestServer = {
  app: FastifyInstance
  url: string
  call(method: string, path: string, call?: Call): Promise<Reply>
  follow(path: string, call?: Call): Promise<Followed>
  close(): Promise<void>
}

/** Starts the app on a free loopback port. */
export const startServer = async (options: AppOptions): Promise<TestServer> => {
  const app = await createApp(options)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  return {
    app,
    url,
    call: (method, path, call = {}) => callUrl(url + path, method, call),
    follow: (path, call = {}) => followUrl(url + path, call),
    close: () => app.close(),
  }
}

const requestOf = (method: string, { json, raw, headers = {}, token, signal }: Call): RequestInit => ({
  method,
  headers: {
    ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...headers,
  },
  ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  ...(raw === undefined ? {} : { body: raw as string }),
  ...(signal ? { signal } : {}),
})

/** Sends one request to a server at this address. */
export const callUrl = async (url: string, method: string, call: Call = {}): Promise<Reply> => {
  const response = await fetch(url, requestOf(method, call))
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: jsonOrNull(text) }
}

const jsonOrNull = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests read events of every shape
export type SeenEvent = { event: string; id: number | null; data: any }

/** A stream of events being read. `events` ends with the stream; leaving its loop, or `leave()`, disconnects. */
export type Followed = {
  status: number
  headers: Headers
  events: AsyncGenerator<SeenEvent>
  comments: string[]
  leave(): void
}

const followUrl = async (url: string, call: Call = {}): Promise<Followed> => {
  const controller = new AbortController()
  const response = await fetch(url, requestOf('GET', { ...call, signal: controller.signal }))
  const comments: string[] = []
  const leave = () => controller.abort()
  return { status: response.status, headers: response.headers, events: read(), comments, leave }

  async function* read(): AsyncGenerator<SeenEvent> {
    const parser = new EventSourceParserStream({ onComment: (comment) => comments.push(comment) })
    const messages = response.body?.pipeThrough(new TextDecoderStream() as never).pipeThrough(parser as never)
    try {
      for await (const message of (messages ?? []) as AsyncIterable<{
        event?: string
        id?: string
        data: string
      }>)
        yield {
          event: message.event ?? 'message',
          id: message.id === undefined ? null : Number(message.id),
          data: JSON.parse(message.data),
        }
    } catch (error) {
      if (!controller.signal.aborted) throw error
    } finally {
      leave()
    }
  }
}

/** All of a stream that ends by itself. */
export const allEvents = async ({ events }: Followed): Promise<SeenEvent[]> => {
  const seen: SeenEvent[] = []
  for await (const event of events) seen.push(event)
  return seen
}

/** The next `count` events of a stream. */
export const takeEvents = async ({ events }: Followed, count: number): Promise<SeenEvent[]> => {
  const seen: SeenEvent[] = []
  while (seen.length < count) {
    const { value, done } = await events.next()
    if (done) break
    seen.push(value)
  }
  return seen
}
