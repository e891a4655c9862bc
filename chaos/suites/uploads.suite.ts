import { openServers } from '../fleet/servers.ts'
import type { Suite } from '../suite.ts'
import { uploadFiles } from '../uploads/uploads.ts'

export default {
  about:
    'the API is killed 20 times in an upload, which goes on from the offset; a file of 512 MB takes no memory, and a larger one is refused',
  async run(options) {
    await using servers = await openServers()
    return await uploadFiles(servers, options)
  },
} satisfies Suite
