import { expect } from 'vitest'
import { playMany } from '../../chaos/interleavings/campaign.ts'
import { test } from '../support/integration-test.ts'

/** A slice; `npm run chaos -- interleavings` plays 5,000 from another seed each time. */
test('the database is always in a state of the protocol model, in whatever order statements, errors and deaths come', async ({
  backend,
  database,
}) => {
  // as many as catch each of its mutants; PGlite, which runs the same statements, plays three times as slowly
  const count = backend.kind === 'embedded' ? 25 : 220
  const { violation, sequences, seen } = await playMany(database, { seed: 3, sequences: count })
  expect(violation ?? '').toBe('')
  expect(sequences).toBe(count)
  // ids are random, so that few sequences hold the rare ones once or twice, or not at all
  if (backend.kind === 'embedded') return
  for (const what of [
    ...['submits', 'claims', 'appends', 'finishes', 'parks', 'requeues', 'hands back', 'gives up', 'acts'],
    ...[
      'waits for a model',
      'starts to wait',
      'ends a wait',
      'answers',
      'cancels',
      'relays',
      'reconciles',
      'refused writes',
      'faults',
    ],
  ])
    expect(seen[what] ?? 0, `how often a process ${what}`).toBeGreaterThan(0)
}, 600_000)
