import { describe, expect, test } from 'vitest'
import suite from '../../chaos/suites/poison.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('runs that take down their workers'), () => {
  test('fail after five claims; other runs complete', async () => {
    const signal = AbortSignal.timeout(280_000)
    const { figures, failures } = await suite.run({ seed: 7, scale: 1 / 6, say() {}, signal })
    expect(failures).toEqual([])
    expect(figures).toMatchObject({ 'poison runs given up': 1 })
  }, 300_000)
})
