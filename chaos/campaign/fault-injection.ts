import { setTimeout as pause } from 'node:timers/promises'
import type { Servers } from '../failures/servers.ts'
import type { TcpProxy } from '../failures/tcp-proxy.ts'
import { seededPick, seededShare } from '../seeded-choice.ts'
import type { Plan } from './plan.ts'
import type { Progress } from './progress.ts'
import type { World } from './world.ts'

type Setting = { servers: Servers; proxies: World['proxies']; ms: number }

/** What can happen on the way to a server, whichever it is. `ms` is how long it lasts, where it lasts. */
const onTheWay = (proxyOf: (setting: Setting) => TcpProxy) => ({
  cut: async (setting: Setting) => proxyOf(setting).cut(),
  refused: async (setting: Setting) => {
    await proxyOf(setting).down()
    await pause(setting.ms)
    await proxyOf(setting).open()
  },
  'black hole': async (setting: Setting) => {
    proxyOf(setting).freeze()
    await pause(setting.ms)
    proxyOf(setting).thaw()
  },
  slow: async (setting: Setting) => {
    proxyOf(setting).delayMs = 20 + setting.ms / 20
    await pause(setting.ms)
    proxyOf(setting).delayMs = 0
  },
  'half-closed': async (setting: Setting) => proxyOf(setting).halfClose(),
  'answers lost': async (setting: Setting) => proxyOf(setting).loseAnswers(5),
})

const redisFaults = {
  ...onTheWay(({ proxies }) => proxies.redis),
  restarted: async ({ servers: { redis } }: Setting) => {
    await redis.stop('SIGTERM')
    await redis.start()
  },
  killed: async ({ servers: { redis }, ms }: Setting) => {
    await redis.stop('SIGKILL')
    await pause(ms)
    await redis.start()
  },
  flushed: async ({ servers: { redis } }: Setting) => void (await redis.flush()),
  frozen: async ({ servers: { redis }, ms }: Setting) => {
    redis.freeze()
    await pause(ms)
    redis.thaw()
  },
}

const postgresFaults = {
  ...onTheWay(({ proxies }) => proxies.postgres),
  'stopped hard': async ({ servers: { postgres }, ms }: Setting) => {
    await postgres.crash()
    await pause(ms)
    await postgres.start()
  },
  killed: async ({ servers: { postgres } }: Setting) => {
    await postgres.kill()
    await postgres.start()
  },
  'connections cut': async ({ servers: { postgres } }: Setting) => void (await postgres.cutConnections()),
  'cut after COMMIT': async ({ proxies: { postgres } }: Setting) => postgres.loseAnswers(5, /COMMIT/),
}

const kinds = { redis: redisFaults, postgres: postgresFaults }

export type InjectedFault = { server: keyof typeof kinds; kind: string; ms: number }

/** The faults of a plan in order: as many of each server, every kind of each as often as any other. */
export const planFaults = (plan: Plan): InjectedFault[] => {
  const ofServer = (server: keyof typeof kinds): InjectedFault[] => {
    const names = Object.keys(kinds[server]).sort(
      (a, b) => seededShare(plan.seed, server, a) - seededShare(plan.seed, server, b),
    )
    return Array.from({ length: plan.faultsOfEach }, (_, nth) => ({
      server,
      kind: names[nth % names.length] ?? '',
      ms: 200 + 2800 * seededShare(plan.seed, server, nth) ** 2,
    }))
  }
  const [redis, postgres] = [ofServer('redis'), ofServer('postgres')]
  return redis.flatMap((one, nth) => {
    const other = postgres[nth]
    if (!other) return [one]
    return seededPick([0, 1], plan.seed, 'first', nth) === 0 ? [one, other] : [other, one]
  })
}

/** Does what a plan has in store for the servers, spread over its kills. Gives how often each was done. */
export const injectFaults = async (
  world: World,
  plan: Plan,
  progress: Progress,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Record<string, number>> => {
  const all = planFaults(plan)
  const done: Record<string, number> = {}
  for (const [nth, { server, kind, ms }] of all.entries()) {
    await progress.until(({ kills }) => kills >= ((nth + 0.5) * plan.kills) / all.length, signal)
    say(`${server} ${kind}`)
    const faults: Record<string, (setting: Setting) => Promise<void>> = kinds[server]
    await faults[kind]?.({ servers: world.servers, proxies: world.proxies, ms })
    const name = `${server} ${kind}`
    done[name] = (done[name] ?? 0) + 1
  }
  return done
}
