import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { hostileAnswers } from './hostile-answers.ts'

/** The vendor of hostile answers, a process: the first name of a path says which. It counts requests to `caught`, of which there must be none. */

/** Repeats what it was asked for in its error. */
const echo = async (response: ServerResponse, request: IncomingMessage): Promise<void> => {
  const asked = (await json(request)) as { prompt?: unknown }
  response
    .writeHead(400, { 'content-type': 'application/json' })
    .end(JSON.stringify({ error: { message: asked.prompt, type: 'invalid_request_error' } }))
}

let caught = 0

const server = createServer((request, response) => {
  const [, name = ''] = decodeURIComponent(request.url ?? '').split('/')
  if (name === 'count') return void response.end(JSON.stringify({ caught }))
  if (name === 'caught') {
    caught++
    return void response.end('{}')
  }
  if (name === 'echo') return echo(response, request)
  // what is asked is of no interest, and some never wait for it
  request.resume()
  response.on('error', () => {})
  const say = hostileAnswers[name]
  if (say) say(response, request)
  else response.writeHead(404).end()
})
server.listen(0, '127.0.0.1', () => {
  process.send?.({ event: 'ready', port: (server.address() as AddressInfo).port })
})
process.once('disconnect', () => process.exit(1))
