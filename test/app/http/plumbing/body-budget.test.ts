import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { TestServer } from '../../../support/http.ts'
import { body, eventually, serveGuarded } from '../test-server.ts'

const kilobyte = 1024
const memory = { processBytes: 256 * kilobyte, tokenBytes: 64 * kilobyte }
const slow = { idleMs: 60_000, wholeMs: 60_000 }

/** A request whose body stalls after `sent` bytes; without `length` the body is chunked. */
const stall = (
  server: TestServer,
  token: string,
  { sent, length }: { sent: number; length?: number },
): Socket => {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const framing = length === undefined ? 'transfer-encoding: chunked' : `content-length: ${length}`
  const bytes = ' '.repeat(sent)
  socket.write(
    `POST /v1/runs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n${framing}\r\n\r\n${
      length === undefined ? `${sent.toString(16)}\r\n${bytes}\r\n` : bytes
    }`,
  )
  return socket
}
const refusal = async (socket: Socket): Promise<string> => text(socket)
const submit = (server: TestServer, token: string, prompt = 'p') =>
  server.call('POST', '/v1/runs', { token, json: { ...body, prompt } })
/** Waits until the server has begun to read so many bodies, then lets it read what is there. */
const arrived = async (server: TestServer, open: () => Socket[]): Promise<Socket[]> => {
  let requests = 0
  const count = () => {
    requests += 1
  }
  server.app.server.on('request', count)
  const sockets = open()
  await eventually(() => requests === sockets.length)
  server.app.server.off('request', count)
  return sockets
}

describe('stalled bodies', () => {
  it('of one token take no more than its share: it gets 429, other tokens are answered', async () => {
    const { server } = await serveGuarded({ bodyMemory: memory, bodyTimes: slow })
    const first = { length: 60 * kilobyte, sent: 10 }
    const [held] = await arrived(server, () => [stall(server, 'all', first)])
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => refusal(stall(server, 'all', { length: 30 * kilobyte, sent: 5 }))),
    )
    for (const reply of replies) {
      expect(reply).toMatch(/^HTTP\/1\.1 429 /)
      expect(reply).toMatch(/\r\nretry-after: 2\r\n/)
      expect(reply).toMatch(/\r\nconnection: close\r\n/i)
      expect(reply).toContain('MASON_TOKEN_BODY_MEMORY_MB')
    }
    expect((await submit(server, 'other', 'x'.repeat(50 * kilobyte))).status).toBe(202)
    // the memory is free again once the request has ended
    held?.destroy()
    await eventually(async () => (await submit(server, 'all', 'x'.repeat(50 * kilobyte))).status === 202)
  })

  it('of several tokens leave memory for small bodies; a large one gets 503', async () => {
    const { server } = await serveGuarded({
      bodyMemory: { processBytes: 100 * kilobyte, tokenBytes: 64 * kilobyte },
      bodyTimes: slow,
    })
    await arrived(server, () => [stall(server, 'all', { length: 60 * kilobyte, sent: 1 })])
    const large = await submit(server, 'other', 'x'.repeat(50 * kilobyte))
    expect([large.status, large.body.code, large.headers.get('retry-after')]).toEqual([
      503,
      'server_busy',
      '2',
    ])
    expect(large.body.remedy).toContain('MASON_BODY_MEMORY_MB')
    expect((await submit(server, 'other')).status).toBe(202)
  })

  it('without a length count as they arrive', async () => {
    const { server } = await serveGuarded({ bodyMemory: memory, bodyTimes: slow })
    const over = stall(server, 'all', { sent: 65 * kilobyte })
    expect(await refusal(over)).toMatch(/^HTTP\/1\.1 429 /)
    await arrived(server, () => [stall(server, 'all', { sent: 40 * kilobyte })])
    await eventually(async () => (await submit(server, 'all', 'x'.repeat(40 * kilobyte))).status === 429)
    expect((await submit(server, 'all')).status).toBe(202)
  })

  it('end with 408, which says why', async () => {
    const { server } = await serveGuarded({ bodyTimes: { idleMs: 50, wholeMs: 60_000 } })
    const reply = await refusal(stall(server, 'all', { length: 100, sent: 10 }))
    expect(reply).toMatch(/^HTTP\/1\.1 408 /)
    expect(reply).toContain('no byte of the body arrived for 0.05 s')
  })

  it('that send a byte now and then end with 408 too', async () => {
    const { server } = await serveGuarded({ bodyTimes: { idleMs: 60_000, wholeMs: 100 } })
    const socket = stall(server, 'all', { length: 100_000, sent: 10 })
    const timer = setInterval(() => socket.write(' '), 10)
    onTestFinished(() => clearInterval(timer))
    expect(await refusal(socket)).toContain('the body did not arrive in time')
  })
})

it('every route that takes a body is within the budget', async () => {
  const { server } = await serveGuarded({ bodyMemory: { processBytes: 256 * kilobyte, tokenBytes: 10 } })
  const { body: document } = await server.call('GET', '/openapi.json')
  const routes = Object.entries(
    document.paths as Record<string, Record<string, { requestBody?: object }>>,
  ).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, operation]) => operation.requestBody)
      .map(([method]) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x')] as const),
  )
  expect(routes.length).toBeGreaterThan(30)
  for (const [method, path] of routes) {
    const reply = await server.call(method, path, { token: 'the-admin', raw: ' '.repeat(100) })
    expect([method, path, reply.status]).toEqual([method, path, 429])
  }
})

it('a body that is sent with a wrong token is not read', async () => {
  const { server } = await serveGuarded({ bodyMemory: memory, bodyTimes: slow })
  const socket = stall(server, 'no-such-token', { length: 60 * kilobyte, sent: 10 })
  await once(socket, 'data')
  expect((await submit(server, 'all', 'x'.repeat(50 * kilobyte))).status).toBe(202)
})
