import { randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { planFaults } from '../../chaos/campaign/fault-injection.ts'
import { planOf } from '../../chaos/campaign/plan.ts'
import { fateOf } from '../../chaos/campaign/workers.ts'
import type { Suite } from '../../chaos/suite.ts'
import campaign from '../../chaos/suites/campaign.suite.ts'
import crashPoints from '../../chaos/suites/crash-points.suite.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

/** A slice of what `npm run chaos` does for an hour; on servers of its own, which it breaks. */
const passes = async (suite: Suite, scale: number): Promise<void> => {
  const seed = randomInt(2 ** 31)
  const lines: string[] = [`seed ${seed}`]
  const signal = AbortSignal.timeout(280_000)
  const { failures } = await suite.run({ seed, scale, say: (line) => void lines.push(line), signal })
  expect(failures, lines.join('\n')).toEqual([])
}

test('a seed determines the events and their order', () => {
  const scheduleOf = (seed: number) => {
    const plan = planOf(seed, 0.02)
    const fates = Array.from({ length: 20 }, (_, nth) => fateOf(seed, nth % 3, nth, plan.stopShare))
    return JSON.stringify([plan.sessions, planFaults(plan), fates])
  }
  expect(scheduleOf(1)).toBe(scheduleOf(1))
  expect(scheduleOf(1)).not.toBe(scheduleOf(2))
})

describe.skipIf(serversMissing !== null)(onServers('in chaos'), { timeout: 300_000 }, () => {
  test('a worker may die at every durable write: its work is completed, and nothing is done twice', () =>
    passes(crashPoints, 0.01))

  test('workers are killed and frozen, servers broken, clocks set wrong: nothing is lost, nothing doubled', () =>
    passes(campaign, 0.015))
})
