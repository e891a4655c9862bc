import { describe, expect, test } from 'vitest'
import suite from '../../chaos/suites/fuzz.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('malformed requests and jobs'), () => {
  test('are refused by name, do no harm and are never lost silently', async () => {
    const signal = AbortSignal.timeout(280_000)
    const { figures, failures } = await suite.run({ seed: 7, scale: 0.015, say() {}, signal })
    expect(failures).toEqual([])
    expect(figures).toMatchObject({ requests: 150, jobs: 150, 'valid runs in between': 3 })
  }, 300_000)
})
