import { openServers } from '../failures/servers.ts'
import { buyMany } from '../purchases/campaign.ts'
import { findInParts, type Suite } from '../suite.ts'

const purchases = 200

const suite: Suite = {
  about:
    'purchases over A2A from agents of three processes, while a worker, the executor, the merchant, the wallet or the card processor is killed after each step in turn: none is doubled or lost, and the books of all agree',
  run({ seed, scale, say, signal }) {
    const buy = async (ap2: '0.1' | '0.2') => {
      await using servers = await openServers()
      return await buyMany({
        ...{ databaseUrl: servers.postgres.url, redisUrl: servers.redis.url, ap2, lanes: 4 },
        ...{ purchases: Math.max(15, Math.round((purchases / 2) * scale)), seed, say, signal },
      })
    }
    return findInParts({ 'AP2 0.1': () => buy('0.1'), 'AP2 0.2': () => buy('0.2') }, say)
  },
}

export default suite
