import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** `node vendor-process.js '<JSON of VendorTask>'`: a model server that streams the same answer to everybody. */
export type VendorTask = {
  /** How long an answer takes from its first word to its last; 0: all at once. */ ms: number
}

const { ms } = JSON.parse(process.argv[2] ?? '') as VendorTask

const chunk = (rest: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'fake', ...rest })}\n\n`
const delta = (piece: object, finish_reason: string | null = null): string =>
  chunk({ choices: [{ index: 0, delta: piece, finish_reason }] })

const frames = [
  delta({ role: 'assistant', content: '' }),
  ...Array.from({ length: 16 }, (_, at) => delta({ content: `word ${at} ` })),
  delta({}, 'stop'),
  chunk({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 32, total_tokens: 52 } }),
  'data: [DONE]\n\n',
]

const server = createServer(async (request, response) => {
  for await (const _ of request);
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const frame of frames) {
    if (ms > 0) await sleep(ms / frames.length)
    response.write(frame)
  }
  response.end()
})
// a busy machine may keep this process waiting for longer than node leaves idle connections open
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
// the parent process is gone
process.once('disconnect', () => process.exit(1))
