import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json as readJson } from 'node:stream/consumers'

/** A program that listens on loopback. */
export type Listening = { url: string; close(): void }

const listen = async (server: Server): Promise<Listening> => {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close().closeAllConnections() }
}

/** Answers every request with JSON. */
export const serveJson = (answer: (request: IncomingMessage) => Promise<unknown>): Promise<Listening> =>
  listen(
    createServer(async (request, response) => {
      const body = await answer(request)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }),
  )

/** What a planner said and got so far. */
export type Talk = { role: string; content: string | null; tool_calls?: { function: { name: string } }[] }[]
type Reply = { content: string } | { name: string; args: object }

/** A scripted model behind OpenAI's API, in place of a real one: `think` plays the planner. */
export const startModel = (think: (talk: Talk) => Reply): Promise<Listening> =>
  serveJson(async (request) => {
    const { messages, tools } = (await readJson(request)) as { messages: Talk; tools?: unknown[] }
    const reply = tools ? think(messages) : { content: '{}' }
    const calls =
      'name' in reply
        ? [
            {
              id: `call_${reply.name}`,
              type: 'function',
              function: { name: reply.name, arguments: JSON.stringify(reply.args) },
            },
          ]
        : []
    const message = 'content' in reply ? reply : { content: null, tool_calls: calls }
    const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop'
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }]
    return { id: 'reply', object: 'chat.completion', model: 'scripted', choices }
  })
