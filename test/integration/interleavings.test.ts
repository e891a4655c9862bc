import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import { playMany } from '../chaos/interleavings/campaign.ts'
import { type Backend, openBackend } from '../support/backend.ts'

let backend: Backend
let database: Database

beforeAll(async () => {
  backend = await openBackend()
  database = await backend.openDatabase()
})
afterAll(async () => {
  await database?.close()
  await backend?.drop()
})

/** A slice; `npm run chaos -- interleavings` plays 5,000 from another seed each time. */
test('whatever order statements, faults and deaths come in, the database is what the model of the protocol allows', async () => {
  // as many as catch each of its mutants; PGlite plays three times as slowly
  const count = backend.kind === 'embedded' ? 60 : 220
  const { violation, sequences, seen } = await playMany(database, { seed: 3, sequences: count })
  expect(violation ?? '').toBe('')
  expect(sequences).toBe(count)
  for (const what of [
    ...['submits', 'claims', 'appends', 'finishes', 'parks', 'requeues', 'hands back', 'gives up', 'acts'],
    ...['answers', 'cancels', 'relays', 'reconciles', 'refused writes', 'faults'],
  ])
    expect(seen[what] ?? 0, `how often somebody ${what}`).toBeGreaterThan(0)
}, 300_000)
