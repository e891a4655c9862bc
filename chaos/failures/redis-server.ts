import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { run } from './run.ts'

/** One private Redis server, to be killed, frozen and emptied. */
export class RedisServer {
  readonly url: string
  readonly #data: string

  constructor(data: string, url: string) {
    this.#data = data
    this.url = url
  }

  get pid(): number {
    return Number(readFileSync(join(this.#data, 'redis.pid'), 'utf8'))
  }

  /** `SIGTERM`: in good order; `SIGKILL`: with the last second of its log lost. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { pid } = this
    process.kill(pid, signal)
    while (existsSync(`/proc/${pid}/exe`)) await pause(20)
  }

  async start(): Promise<void> {
    const { port } = new URL(this.url)
    const at = (name: string): string => join(this.#data, name)
    const place = ['--bind', '127.0.0.1', '--port', port, '--dir', this.#data]
    const keeping = ['--appendonly', 'yes', '--save', '', '--maxmemory-policy', 'noeviction']
    const files = ['--daemonize', 'yes', '--pidfile', at('redis.pid'), '--logfile', at('server.log')]
    await run('redis-server', [...place, ...keeping, ...files])
    await this.#ask((redis) => redis.ping())
  }

  /** Everything it holds is gone, as after a failover to an empty server. */
  flush(): Promise<unknown> {
    return this.#ask((redis) => redis.flushall())
  }

  freeze(): void {
    process.kill(this.pid, 'SIGSTOP')
  }

  thaw(): void {
    process.kill(this.pid, 'SIGCONT')
  }

  async #ask(work: (redis: Redis) => Promise<unknown>): Promise<unknown> {
    const redis = new Redis(this.url, { maxRetriesPerRequest: 100, retryStrategy: () => 100 })
    redis.on('error', () => {})
    try {
      return await work(redis)
    } finally {
      redis.disconnect()
    }
  }
}
