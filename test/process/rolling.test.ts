import { describe, expect, test } from 'vitest'
import { rolling } from '../../chaos/rolling/rolling.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('a rolling restart under load'), () => {
  test('loses and doubles nothing; every process exits cleanly, and its runs go on at once', async () => {
    const { figures, failures } = await rolling({
      seed: 7,
      scale: 0.2,
      say() {},
      signal: AbortSignal.timeout(280_000),
    })
    expect(failures).toEqual([])
    expect(figures).toMatchObject({ lost: 0, doubled: 0, 'exit codes': '0' })
  }, 300_000)
})
