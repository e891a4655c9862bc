import { describe, expect, test } from 'vitest'
import { outage } from '../../chaos/outage/outage.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('a vendor that is gone for a while'), () => {
  test('loses and doubles no run, and no run holds a lease meanwhile', async () => {
    const signal = AbortSignal.timeout(280_000)
    const { figures, failures } = await outage({ seed: 7, scale: 0.1, say() {}, signal })
    expect(failures).toEqual([])
    expect(figures).toMatchObject({ completed: 20, failed: 0, lost: 0, doubled: 0 })
  }, 300_000)
})
