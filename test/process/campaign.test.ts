import { randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { planFaults } from '../../chaos/campaign/fault-injection.ts'
import { planOf } from '../../chaos/campaign/plan.ts'
import { fateOf } from '../../chaos/campaign/workers.ts'
import campaign from '../../chaos/suites/campaign.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

test('a seed determines the events and their order', () => {
  const scheduleOf = (seed: number) => {
    const plan = planOf(seed, 0.02)
    const fates = Array.from({ length: 20 }, (_, nth) => fateOf(seed, nth % 3, nth, plan.stopShare))
    return JSON.stringify([plan.sessions, planFaults(plan), fates])
  }
  expect(scheduleOf(1)).toBe(scheduleOf(1))
  expect(scheduleOf(1)).not.toBe(scheduleOf(2))
})

/** A slice of what `npm run chaos` does for an hour; on servers of its own, which it breaks. */
describe.skipIf(serversMissing !== null)(onServers('in chaos'), () => {
  test('workers are killed and frozen, servers broken, clocks set wrong: nothing is lost, nothing doubled', async () => {
    const seed = randomInt(2 ** 31)
    const lines: string[] = [`seed ${seed}`]
    const { failures } = await campaign.run({
      ...{ seed, scale: 0.01, say: (line) => void lines.push(line) },
      signal: AbortSignal.timeout(280_000),
    })
    expect(failures, lines.join('\n')).toEqual([])
  }, 300_000)
})
