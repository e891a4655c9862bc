import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { freePort } from '../../examples/free-port.ts'
import type { Processes } from './processes.ts'

/** A Redis that keeps nothing, to be killed. */
export const startOwnRedis = async (
  processes: Processes,
): Promise<{ url: string; kill(): Promise<void> }> => {
  const port = await freePort()
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', options, { stdio: 'ignore' })
  processes.adopt(server)
  const gone = once(server, 'exit')
  const url = `redis://127.0.0.1:${port}`
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {})
  await Promise.race([
    client.ping(),
    gone.then(() => {
      throw new Error('redis-server ended before it answered')
    }),
  ])
  client.disconnect()
  return {
    url,
    async kill() {
      server.kill('SIGKILL')
      await gone
    },
  }
}
