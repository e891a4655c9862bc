import { describe, expect, test } from 'vitest'
import { uploadFiles } from '../../chaos/uploads/uploads.ts'
import { openOwnServers, serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('an upload to a served API'), () => {
  test('survives SIGKILL, takes little memory and is limited', async () => {
    const { config, drop } = await openOwnServers()
    const databaseUrl = config.database.kind === 'postgres' ? config.database.url : ''
    try {
      const { failures } = await uploadFiles(
        { databaseUrl, redisUrl: config.redisUrl ?? '' },
        { seed: 13, scale: 1 / 64, say() {}, signal: AbortSignal.timeout(280_000) },
        { MASON_QUEUE_PREFIX: config.queuePrefix },
      )
      expect(failures).toEqual([])
    } finally {
      await drop()
    }
  }, 300_000)
})
