import { openServers } from '../failures/servers.ts'
import { payMany } from '../payments/campaign.ts'
import type { Suite } from '../suite.ts'

const payments = 5000
const faultEveryS = 2

const suite: Suite = {
  about:
    'payments through two executors and a provider that answers in every ambiguous way, then again while executors, provider and Postgres are killed and frozen: none is doubled or lost, and mandates, payments and the books of the provider have one sum',
  async run({ seed, scale, say, signal }) {
    const found = { figures: {} as Record<string, string | number>, failures: [] as string[] }
    for (const part of ['ambiguous', 'killed'] as const) {
      await using servers = await openServers()
      const { figures, failures } = await payMany({
        ...{ databaseUrl: servers.postgres.url, postgres: servers.postgres },
        ...{ payments: Math.max(20, Math.round(payments * scale)), stuck: 0.005, seed, say, signal },
        faultEveryS: part === 'killed' ? faultEveryS : null,
      })
      say(`${part}: ${failures.length === 0 ? 'holds' : failures.join('; ')}: ${JSON.stringify(figures)}`)
      for (const [name, value] of Object.entries(figures)) found.figures[`${part}: ${name}`] = value
      found.failures.push(...failures.map((failure) => `${part}: ${failure}`))
    }
    return found
  },
}

export default suite
