// asserts: invariants

import { describe, expect, test } from 'vitest'
import suite from '../../chaos/suites/crash-points.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

/** A few of the points of `npm run chaos -- crash-points`, in processes; `orders.test.ts` has all of them in one process. */
describe.skipIf(serversMissing !== null)(onServers('a worker that dies at a durable write'), () => {
  test('leaves work that others complete, and nothing is done twice', async () => {
    const lines: string[] = []
    const { failures } = await suite.run({
      ...{ seed: 7, scale: 0.005, say: (line) => void lines.push(line) },
      signal: AbortSignal.timeout(280_000),
    })
    expect(failures, lines.join('\n')).toEqual([])
  }, 300_000)
})
