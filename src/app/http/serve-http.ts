import type { AddressInfo } from 'node:net'
import type { Runtime } from '../api.ts'
import { createApp } from './app.ts'
import type { ServeOptions } from './serve-options.ts'

/**
 * Serves the HTTP API of a runtime. Close the server before the runtime.
 *
 * @example
 * ```ts
 * import { openRuntime, readConfig, readEnvironment, serveHttp } from 'mason-runtime'
 *
 * const config = readConfig(readEnvironment(), { role: 'serve' })
 * const runtime = await openRuntime(config)
 * await runtime.startWorker()
 * const server = await serveHttp(runtime, { auth: config.auth, adminToken: config.adminToken, port: 8080 })
 * process.once('SIGTERM', async () => {
 *   await server.close()
 *   await runtime.close()
 * })
 * ```
 */
export const serveHttp = async (
  runtime: Runtime,
  { port = 0, host = '127.0.0.1', ...options }: ServeOptions,
): Promise<{ port: number; close(): Promise<void> }> => {
  const app = await createApp({ runtime, ...options })
  try {
    await app.listen({ port, host })
  } catch (error) {
    await app.close()
    throw error
  }
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}
