import { openServers } from '../fleet/servers.ts'
import { submitThroughFaults } from '../proxies/proxies.ts'
import type { Suite } from '../suite.ts'

export default {
  about:
    '1,000 jobs each by the client, by Python over HTTP and by plain BullMQ, through bad connections: 1,000 runs each, and every outcome is known',
  async run(options) {
    await using servers = await openServers()
    return await submitThroughFaults(servers, options)
  },
} satisfies Suite
