import { openServers } from '../failures/servers.ts'
import { buyMany } from '../purchases/campaign.ts'
import type { Suite } from '../suite.ts'

const purchases = 200

const suite: Suite = {
  about:
    'purchases over A2A from agents of three processes, while a worker, the executor, the merchant, the wallet or the card processor is killed after each step in turn: none is doubled or lost, and the books of all agree',
  async run({ seed, scale, say, signal }) {
    const found = { figures: {} as Record<string, string | number>, failures: [] as string[] }
    for (const ap2 of ['0.1', '0.2'] as const) {
      await using servers = await openServers()
      const { figures, failures } = await buyMany({
        ...{
          databaseUrl: servers.postgres.url,
          redisUrl: servers.redis.url,
          ap2,
          lanes: 4,
          seed,
          say,
          signal,
        },
        purchases: Math.max(15, Math.round((purchases / 2) * scale)),
      })
      for (const [name, value] of Object.entries(figures)) found.figures[`AP2 ${ap2}: ${name}`] = value
      found.failures.push(...failures.map((failure) => `AP2 ${ap2}: ${failure}`))
    }
    return found
  },
}

export default suite
