import { expect, test } from 'vitest'
import { planFaults } from '../../chaos/campaign/fault-injection.ts'
import { planOf } from '../../chaos/campaign/plan.ts'
import { fateOf } from '../../chaos/campaign/workers.ts'

test('a seed determines the events of a campaign and their order', () => {
  const scheduleOf = (seed: number) => {
    const plan = planOf(seed, 0.02)
    const fates = Array.from({ length: 20 }, (_, nth) => fateOf(seed, nth % 3, nth, plan.stopShare))
    return JSON.stringify([plan.sessions, planFaults(plan), fates])
  }
  expect(scheduleOf(1)).toBe(scheduleOf(1))
  expect(scheduleOf(1)).not.toBe(scheduleOf(2))
})
