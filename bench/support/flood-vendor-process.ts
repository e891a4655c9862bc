import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** `node flood-vendor-process.js {}`: a model server that treats each request as the word `vendor:…` in its prompt says. */
export type VendorKind = 'silent' | 'dripping' | 'slow' | '500' | 'error in a 200' | '429'

const event = (rest: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', model: 'fake', ...rest })}\n\n`
const delta = (piece: object, finish_reason: string | null = null): string =>
  event({ choices: [{ index: 0, delta: piece, finish_reason }] })
const failure = JSON.stringify({ error: { message: 'poisonous', type: 'server_error', code: null } })
const stream = { 'content-type': 'text/event-stream' }
const json = { 'content-type': 'application/json' }

const answer = (response: ServerResponse): unknown =>
  response
    .writeHead(200, stream)
    .end(`${delta({ role: 'assistant', content: 'Done.' })}${delta({}, 'stop')}data: [DONE]\n\n`)

const treatments: Record<VendorKind, (response: ServerResponse) => unknown> = {
  silent: () => {},
  dripping: async (response) => {
    response.writeHead(200, stream)
    for (const byte of delta({ content: 'word ' }).repeat(100)) {
      if (response.destroyed) return
      response.write(byte)
      await sleep(500)
    }
  },
  slow: async (response) => {
    await sleep(5000)
    answer(response)
  },
  500: (response) => response.writeHead(500, json).end(failure),
  429: (response) => response.writeHead(429, json).end(failure),
  'error in a 200': (response) =>
    response.writeHead(200, stream).end(`${delta({ role: 'assistant' })}data: ${failure}\n\n`),
}

const server = createServer(async (request, response) => {
  let body = ''
  for await (const part of request) body += part
  const [, kind] = /vendor:([\w ]+);/.exec(body) ?? []
  // other roles are asked beside the planner
  const isPlanner = request.headers['x-mason-role'] === 'planner'
  await (kind === undefined || !isPlanner ? answer(response) : treatments[kind as VendorKind](response))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
// the parent process is gone
process.once('disconnect', () => process.exit(1))
