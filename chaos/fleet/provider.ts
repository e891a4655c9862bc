import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { partsOf } from './job.ts'

/** The world outside: slow calls wait here, and effects are written down, each under the key it came with. */
export type Provider = AsyncDisposable & {
  url: string
  /** How many calls wait here now. */
  waiting(): number
  /** Of each effect's subject, the keys it was asked for under: more than one means that it was done twice. */
  effects: ReadonlyMap<string, ReadonlySet<string>>
}

type Knock = { key: string; effect?: string }

export const startProvider = async (): Promise<Provider> => {
  const effects = new Map<string, Set<string>>()
  const timers = new Set<NodeJS.Timeout>()
  const server = createServer(async (request, response) => {
    const { key, effect } = JSON.parse(await text(request)) as Knock
    if (effect !== undefined) effects.set(key, (effects.get(key) ?? new Set()).add(effect))
    const { ms } = partsOf(key)
    if (ms === 0) return void response.end('{"text":"ok"}')
    const timer = setTimeout(() => response.end('{"text":"ok"}'), ms)
    timers.add(timer)
    response.once('close', () => {
      clearTimeout(timer)
      timers.delete(timer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    waiting: () => timers.size,
    effects,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    },
  }
}
