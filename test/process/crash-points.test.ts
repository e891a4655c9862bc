import { randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import suite from '../../chaos/suites/crash-points.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

/** Half of the points of `npm run chaos -- crash-points`, another half by another seed, on servers of its own. */
describe.skipIf(serversMissing !== null)(onServers('a worker that dies at a durable write'), () => {
  test('leaves work that others complete, and nothing is done twice', async () => {
    const seed = randomInt(2 ** 31)
    const lines: string[] = [`seed ${seed}`]
    const { failures } = await suite.run({
      ...{ seed, scale: 0.005, say: (line) => void lines.push(line) },
      signal: AbortSignal.timeout(280_000),
    })
    expect(failures, lines.join('\n')).toEqual([])
  }, 300_000)
})
