// backends: either
// asserts: invariants

import { expect } from 'vitest'
import { playMany } from '../../../chaos/interleavings/campaign.ts'
import { test } from '../../support/integration-test.ts'

/** A slice; `npm run chaos -- interleavings` plays 5,000 from another seed each time. */
const count = Number(process.env.MASON_INTERLEAVINGS ?? 30)

// PGlite runs the same statements, one after the other, and three times as slowly
test.skipIf(process.env.MASON_TEST_BACKEND === 'embedded')(
  'the database is always in a state of the protocol model, in whatever order statements, errors and deaths come',
  async ({ database }) => {
    const { violation, sequences } = await playMany(database, { seed: 3, sequences: count })
    expect(violation ?? '').toBe('')
    expect(sequences).toBe(count)
  },
  180_000 + count * 5000,
)
