import { describe, expect, test } from 'vitest'
import suite from '../../chaos/suites/vendors.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('calls to vendors with 24 faults'), () => {
  test('end in time, are booked to the token, and show no secret', async () => {
    const signal = AbortSignal.timeout(280_000)
    const { figures, failures } = await suite.run({ seed: 7, scale: 0.02, say() {}, signal })
    expect(failures).toEqual([])
    expect(figures['of them with a fault']).toBeGreaterThan(20)
  }, 300_000)
})
