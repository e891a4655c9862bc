import { describe, expect, test } from 'vitest'
import suite from '../../chaos/suites/bad-models.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('runs on bad models'), () => {
  test('end in time, with the right code and remedy, and count each token once', async () => {
    const signal = AbortSignal.timeout(280_000)
    const { figures, failures } = await suite.run({ seed: 7, scale: 0.03, say() {}, signal })
    expect(failures).toEqual([])
    expect(figures['of them with a fault']).toBeGreaterThan(20)
  }, 300_000)
})
