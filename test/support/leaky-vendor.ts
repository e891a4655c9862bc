import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A vendor that repeats what it was sent, credentials and all, in every way in which an answer can go wrong. */

/** Stands beside every secret that is repeated: where this is found, a secret has had its chance. */
export const mark = 'heron'

type Sent = {
  /** All credentials of the request as one text, with the mark. */
  said: string
  /** The first of them, as a header has it. */
  key: string
}
type Say = (sent: Sent, response: ServerResponse) => unknown

const json = (response: ServerResponse, status: number, body: unknown, headers = {}): unknown =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

const refusal =
  (status: number, more: object = {}): Say =>
  ({ said, key }, response) =>
    json(response, status, { error: { message: `no: ${said}`, type: key, param: key, ...more } })

/** So long that excerpts cut the secret in two. */
const long =
  (before: number): Say =>
  ({ said }, response) =>
    json(response, 400, { error: { message: `${mark} ${'x'.repeat(before)} ${said} ${'y'.repeat(400)}` } })

const events =
  (lines: (sent: Sent) => string[], ending: 'end' | 'cut' = 'end'): Say =>
  (sent, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(lines(sent).join('\n\n') + (ending === 'end' ? '\n\n' : ''), () =>
      ending === 'end' ? response.end() : response.destroy(),
    )
  }

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}`

const raw =
  (text: (sent: Sent) => string): Say =>
  (sent, response) =>
    response.socket?.end(text(sent))

/** By name. Those that say nothing are the clocks' and the network's. */
export const leaks: Readonly<Record<string, Say>> = {
  ...Object.fromEntries(
    [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529].map((status) => [
      `${status}`,
      refusal(status),
    ]),
  ),
  'a filter': refusal(400, { code: 'content_filter' }),
  'a length': refusal(400, { code: 'context_length_exceeded' }),
  'no quota': refusal(429, { code: 'insufficient_quota' }),
  'a code': ({ key, said }, response) =>
    json(response, 400, { error: { message: mark, code: key, said }, [key]: 1 }),
  'a page': ({ said }, response) =>
    response.writeHead(502, { 'content-type': 'text/html' }).end(`<b>${said}`),
  'an escaped text': ({ said }, response) =>
    response.writeHead(500).end(JSON.stringify(JSON.stringify(said))),
  'in base64': ({ said }, response) =>
    json(response, 401, { message: `${mark} ${Buffer.from(`user:${said}`).toString('base64')}` }),
  'in an address': ({ said }, response) =>
    json(response, 403, { detail: `${mark} ?key=${encodeURIComponent(said)}` }),
  'cut at 180': long(180),
  'cut at 280': long(280),
  'cut at 480': long(480),
  'a reason': ({ key }, response) => response.writeHead(500, `no ${key}`).end(mark),
  headers: ({ key, said }, response) =>
    json(response, 429, { said }, { 'retry-after': key, 'x-request-id': key, 'www-authenticate': key }),
  'a redirect': ({ key }, response) =>
    response.writeHead(302, { location: `/${mark}?key=${encodeURIComponent(key)}` }).end(),
  'a redirect inside': ({ key }, response) =>
    response
      .writeHead(307, { location: `http://169.254.169.254/${mark}?key=${encodeURIComponent(key)}` })
      .end(),
  'broken headers': raw(({ said }) => `HTTP/1.1 200 OK\r\n${said}\r\n\r\n`),
  'a broken start': raw(({ said }) => `${said}\r\n\r\n`),
  'broken gzip': ({ said }, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(said),
  'another type': ({ key, said }, response) => response.writeHead(200, { 'content-type': key }).end(said),
  'another shape': ({ said, key }, response) => json(response, 200, { sent: said, [key]: [key] }),
  'a list': ({ said }, response) => json(response, 200, [said]),
  'half of it': ({ said }, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(`{"choices": "${said}`),
  'an error inside': ({ said, key }, response) =>
    json(response, 200, { error: { message: said, code: key } }),
  'wrong usage': ({ said }, response) =>
    json(response, 200, { choices: said, usage: { prompt_tokens: said }, data: said }),
  'an event that fails': events(({ said }) => [
    chunk({ role: 'assistant' }),
    `data: ${JSON.stringify({ error: { message: said, type: said } })}`,
  ]),
  'an event of another shape': events(({ said }) => [`event: ${said}`, `data: ${JSON.stringify({ said })}`]),
  'an event that is no JSON': events(({ said }) => [chunk({ content: 'a' }), `data: {${said}`]),
  'a strange line': events(({ said }) => [said, chunk({ content: 'a' }), `: ${said}`, `retry: ${said}`]),
  'a cut': events(({ said }) => [chunk({ content: 'a' }), `data: {"said": "${said}`], 'cut'),
  'no end': events(({ said }) => [chunk({ content: 'a' }), `: ${said}`]),
  'a stall': ({ said }, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`: ${said}\n\n`),
  silence: () => {},
  'a reset': (_, response) => response.socket?.resetAndDestroy(),
}

/** After these it waits for the other side to give up. */
export const waits: ReadonlySet<string> = new Set(['a stall', 'silence'])

export type LeakyVendor = AsyncDisposable & {
  url: string
  /** What it answers from now on: one of `leaks`, by name. */
  leak: string
  /** The leak and the first part of the path of each request so far: `500 chat`. */
  seen: Set<string>
}

const credentialsOf = ({ headers }: IncomingMessage): string[] =>
  [headers.authorization, headers['x-api-key'], headers['x-goog-api-key'], headers['x-tenant']].flatMap(
    (one) => (typeof one === 'string' ? [one] : []),
  )

export const startLeakyVendor = async (): Promise<LeakyVendor> => {
  const seen = new Set<string>()
  const server = createServer((request, response) => {
    const credentials = credentialsOf(request)
    request.resume().once('end', () => {
      const [, way = ''] = (request.url ?? '').split(/[/?]/)
      // this one is careless only when it is asked what became of a job
      if (way === 'poll' && request.method === 'POST') return void json(response, 200, { id: 'job' })
      seen.add(`${vendor.leak} ${way}`)
      const sent = { said: `${mark} ${credentials.join(' and ')} ${mark}`, key: credentials[0] ?? '' }
      void leaks[vendor.leak]?.(sent, response)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  const vendor: LeakyVendor = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leak: '',
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return vendor
}
