// backends: either
// asserts: invariants

import { writeFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { chooseInjections, injectAll } from '../../../chaos/injections/campaign.ts'
import { paymentRunTest as test } from '../../support/payment-runs.ts'

/** Set by `npm run chaos -- injections`, which wants all of them and their figures. */
const whole = process.env.MASON_INJECTIONS
const { seed, count, report } = (
  whole === undefined ? { seed: 16, count: 8, report: null } : JSON.parse(whole)
) as { seed: number; count: number; report: string | null }

describe('injected instructions to pay', () => {
  test('cause no charge that the person has not approved, though the planner obeys each', {
    timeout: 180_000 + count * 3000,
  }, async ({ runtime, server, model, provider, paid, elsewhere }) => {
    expect(paid.providerName).toBeTruthy()
    const world = { runtime, server, model, provider, sql: elsewhere, ledger: paid.executor }
    const found = await injectAll(world, chooseInjections(seed, count), { atOnce: 6, say: console.log })
    if (report !== null) writeFileSync(report, JSON.stringify(found))
    expect(found).toMatchObject({ failures: [], figures: { injections: count, 'charges outside': 0 } })
    expect(found.figures.charges).toBeGreaterThan(count / 3)
  })
})
