import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * `node dialogue-vendor-process.js '{}'`: a model server that writes the language of the dialogue. The prompt says what it calls; its
 * answer is what that took, in milliseconds.
 */
type Asked = { messages: { role: string; content: string }[] }

const frame = (rest: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'fake', ...rest })}\n\n`
const say = (content: string, finish_reason: string | null = null): string =>
  frame({ choices: [{ index: 0, delta: finish_reason ? {} : { content }, finish_reason }] })
const usage = { prompt_tokens: 20, completion_tokens: 32, total_tokens: 52 }
const end = `${say('', 'stop')}${frame({ choices: [], usage })}data: [DONE]\n\n`
const go = '\n<execute_tools />'
const now = (): bigint => process.hrtime.bigint()

/** When the reply with the calls was sent. One conversation at a time. */
let calledAt = 0n

const call = (response: ServerResponse, prompt: string): void => {
  response.write(say('<think>All of it at once, as was asked.</think>\n'))
  calledAt = now()
  const mark = `<mason_server><mark>{"sent":"${calledAt}"}</mark></mason_server>${go}`
  const seconds = Array.from(
    { length: 10 },
    (_, n) => `<mason_server><second>{"n":${n}}</second></mason_server>`,
  )
  if (prompt.includes('bench-ten')) response.end(say(`<parallel>${seconds.join('\n')}</parallel>${go}`) + end)
  else if (prompt.includes('bench-cut')) {
    // it goes on with what is not its to write, and never ends by itself
    response.write(say(mark) + say('\n<result index="0">made up'))
  } else response.end(say(mark) + end)
}

const server = createServer(async (request, response) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const receivedAt = now()
  const { messages } = JSON.parse(Buffer.concat(parts).toString()) as Asked
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const text = messages.map(({ content }) => content).join('\n')
  const result = /^<result index="0">(.*)<\/result>/.exec(messages.at(-1)?.content ?? '')?.[1]
  if (request.headers['x-mason-role'] !== 'planner') response.end(say('{}') + end)
  else if (result === undefined) call(response, text)
  else {
    const ms = result === 'done' ? Number(receivedAt - calledAt) / 1e6 : result
    response.end(say(`<answer>${ms}</answer>`) + end)
  }
})
// a busy machine may keep this process waiting for longer than node leaves idle connections open
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
// the parent process is gone
process.once('disconnect', () => process.exit(1))
