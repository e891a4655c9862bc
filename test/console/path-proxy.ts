import { once } from 'node:events'
import { createServer, request as startRequest } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A proxy that has a server under a path of its own. */
export type PathProxy = {
  /** What people open: its origin with the path. */
  url: string
  /** The origin of the server. */
  target: string
  /** Whether the server gets paths without the prefix. */
  strips: boolean
  close(): Promise<void>
}

/** `prefix`: /mason. */
export const startPathProxy = async (prefix: string): Promise<PathProxy> => {
  const server = createServer((request, response) => {
    const { url = '', method, headers } = request
    if (!url.startsWith(`${prefix}/`)) return void response.writeHead(404).end()
    const path = proxy.strips ? url.slice(prefix.length) : url
    const options = { method, headers: { ...headers, 'x-forwarded-prefix': prefix } }
    const onward = startRequest(proxy.target + path, options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('error', () => response.destroy()).pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const proxy: PathProxy = {
    url: `http://localhost:${(server.address() as AddressInfo).port}${prefix}`,
    target: '',
    strips: true,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}
