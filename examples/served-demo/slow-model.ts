import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createOfflineFetch } from '../../src/infra/models/offline/fetch.ts'

export type SlowModel = { baseUrl: string; close(): void }

/** The built-in offline model behind HTTP, as slow as a real one, so that a run lasts long enough to lose its worker. */
export const startSlowModel = async (delayMs: number): Promise<SlowModel> => {
  const answer = createOfflineFetch()
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    await sleep(delayMs)
    const reply = await answer(`http://offline.invalid${request.url}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.concat(parts).toString(),
    })
    response.writeHead(reply.status, Object.fromEntries(reply.headers))
    response.end(Buffer.from(await reply.arrayBuffer()))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    close: () => void server.close().closeAllConnections(),
  }
}
