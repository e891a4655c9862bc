import { describe, expect, test } from 'vitest'
import { storm } from '../../chaos/storm/storm.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('a storm of reconnecting clients'), () => {
  test('gets every event once and sees the end; nothing is left of it in the API', async () => {
    const { figures, failures } = await storm({
      seed: 7,
      scale: 0.04,
      say() {},
      signal: AbortSignal.timeout(280_000),
    })
    expect(failures).toEqual([])
    expect(figures).toMatchObject({ clients: 40, drops: 800, gaps: 0, repeats: 0, 'answers 5xx': 0 })
  }, 300_000)
})
