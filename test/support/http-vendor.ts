import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A vendor on a free loopback port with scripted responses. */

export type VendorRequest = {
  method: string
  path: string
  headers: IncomingMessage['headers']
  /** The parsed body; undefined without one. */
  body: unknown
  text: string
  /** Resolves when the client has disconnected or everything was sent. */
  closed: Promise<void>
}
export type VendorAnswer = {
  status?: number
  headers?: Record<string, string>
  /** Text and bytes are sent as they are, chunk by chunk; anything else as JSON. */
  body?: unknown
  pieces?: readonly (string | Uint8Array)[]
  /** What follows the last chunk. */
  ending?: 'end' | 'hang' | 'destroy'
}
export type Vendor = AsyncDisposable & { url: string; requests: VendorRequest[] }

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

const send = async (response: ServerResponse, answer: VendorAnswer): Promise<void> => {
  const { status = 200, headers = {}, body, pieces, ending = 'end' } = answer
  const json = { 'content-type': 'application/json' }
  response.writeHead(status, { ...(body === undefined || typeof body === 'string' ? {} : json), ...headers })
  response.flushHeaders()
  const parts = pieces ?? (body === undefined ? [] : [typeof body === 'string' ? body : JSON.stringify(body)])
  for (const part of parts) {
    if (response.destroyed) return
    // the next part is written when the socket has accepted this one, so that each is a chunk of its own
    await new Promise<void>((resolve) => void response.write(part, () => resolve()))
  }
  if (ending === 'end') response.end()
  if (ending === 'destroy') response.destroy()
}

export const startVendor = async (
  answer: (request: VendorRequest, nth: number) => VendorAnswer | Promise<VendorAnswer>,
  port = 0,
): Promise<Vendor> => {
  const requests: VendorRequest[] = []
  const server = createServer((incoming, response) => {
    const closed = new Promise<void>((resolve) => response.once('close', () => resolve()))
    const handle = async (): Promise<void> => {
      const text = await readBody(incoming)
      const body: unknown = text === '' ? undefined : JSON.parse(text)
      const { method = '', url: path = '', headers } = incoming
      const request = { method, path, headers, body, text, closed }
      requests.push(request)
      await send(response, await answer(request, requests.length))
    }
    handle().catch((error: unknown) => {
      // an error in the test's answer is a refusal, as vendors send one
      if (response.headersSent) response.destroy()
      else response.writeHead(400, { 'content-type': 'text/plain' }).end(`refused: ${String(error)}`)
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
