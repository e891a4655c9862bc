import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMasonError } from '../../state/errors.ts'
import type { Runtime } from '../api.ts'

/** A port for probes and Prometheus. */
export type MetricsServer = AsyncDisposable & { port: number }

const requestTimeoutMs = 5_000

const send = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(JSON.stringify(body))
}

/**
 * Serves `/metrics`, `/healthz` and `/readyz` of one process on a port of its own, without a token. `isReady` says whether
 * the process does its work by now; `/readyz` also needs the database.
 */
export const openMetricsServer = async (
  { metrics, health }: Pick<Runtime, 'metrics' | 'health'>,
  { host, port }: { host: string; port: number },
  isReady: () => boolean,
): Promise<MetricsServer> => {
  const routes = new Map<string, (response: ServerResponse) => Promise<void>>([
    ['/healthz', async (response) => send(response, 200, { ok: true })],
    [
      '/readyz',
      async (response) => {
        const { ok, checks } = await health()
        const isWorking = isReady()
        send(response, ok && isWorking ? 200 : 503, { ok: ok && isWorking, is_working: isWorking, checks })
      },
    ],
    [
      '/metrics',
      async (response) => {
        const text = await metrics.text()
        response.writeHead(200, { 'content-type': metrics.contentType }).end(text)
      },
    ],
  ])
  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    const route = routes.get((request.url ?? '').split('?', 1)[0] ?? '')
    if (!route) return send(response, 404, { error: `there are ${[...routes.keys()].join(', ')}` })
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return send(response, 405, { error: 'use GET' })
    route(response).catch((error) =>
      isMasonError(error, 'not_found')
        ? send(response, 404, { error: error.message })
        : send(response, 503, { ok: false }),
    )
  })
  server.listen(port, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
