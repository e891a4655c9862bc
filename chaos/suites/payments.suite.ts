import { openServers } from '../failures/servers.ts'
import { payMany } from '../payments/campaign.ts'
import { findInParts, type Suite } from '../suite.ts'

const payments = 5000
const faultEveryS = 2

const suite: Suite = {
  about:
    'payments through two executors and a provider that answers in every ambiguous way, then again while executors, provider and Postgres are killed and frozen: none is doubled or lost, and mandates, payments and the books of the provider have one sum',
  run({ seed, scale, say, signal }) {
    const pay = async (everyS: number | null) => {
      await using servers = await openServers()
      return await payMany({
        ...{ databaseUrl: servers.postgres.url, postgres: servers.postgres },
        ...{ payments: Math.max(20, Math.round(payments * scale)), stuck: 0.005, seed, say, signal },
        faultEveryS: everyS,
      })
    }
    return findInParts({ ambiguous: () => pay(null), killed: () => pay(faultEveryS) }, say)
  },
}

export default suite
