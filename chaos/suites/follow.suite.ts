import { openServers } from '../fleet/servers.ts'
import { followUnderKills } from '../follow/follow.ts'
import type { Suite } from '../suite.ts'

export default {
  about: "API and workers get SIGKILL 100 times under the client's iterators, which miss and double no event",
  async run(options) {
    await using servers = await openServers()
    return await followUnderKills(servers, options)
  },
} satisfies Suite
