// backends: either

import { describe, expect } from 'vitest'
import { checkRegistry } from '../../../src/app/cli/doctor/registry.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { createModelHealth, type ModelHealth } from '../../../src/models/health/model-health.ts'
import type { FailureSource } from '../../../src/models/ports/call-ports.ts'
import { unique } from '../../support/backend.ts'
import { runtimeTest, test } from '../../support/integration-test.ts'
import { addVendor } from '../../support/vendors.ts'

/** The health of models over two processes that share a database. */

const hour = 3_600_000
const of = (business: string, prompt: string): FailureSource => ({
  ...{ business, run: `${business} ${prompt}`, prompt: () => prompt },
})
const cool = { kind: 'cool', code: 'model_unavailable', message: 'answered 500' } as const

let one: ModelHealth
let two: ModelHealth
let id: string
test.beforeEach(({ database, elsewhere }) => {
  const waits = { cooling: { baseMs: hour, maxMs: hour }, disabled: { baseMs: hour, maxMs: hour } }
  const open = (sql: Database) =>
    createModelHealth({ sql, hints: null, clock: systemClock, log: silentLog, ...waits })
  ;[one, two] = [open(database), open(elsewhere)]
  id = unique('mod')
})
test.afterEach(async () => {
  for (const health of [one, two]) await health[Symbol.asyncDispose]()
})

const fail = async (health: ModelHealth, source: FailureSource): Promise<void> => {
  health.failed('model', id, cool, { isProbe: false, source })
  await health.settled()
}
const stateIn = (health: ModelHealth, source?: FailureSource) =>
  health.stateOf('model', id, source)?.state ?? null

describe('what one process saw', () => {
  test('closes a model in another for the same business alone', async () => {
    for (const prompt of ['one', 'two']) await fail(one, of('a', prompt))
    await expect.poll(() => stateIn(two, of('a', 'three'))).toBe('cooling')
    expect(stateIn(two, of('b', 'three'))).toBeNull()
  })

  test('counts with what another saw: two businesses close it for all, in both', async () => {
    for (const prompt of ['one', 'two']) await fail(one, of('a', prompt))
    await expect.poll(() => stateIn(two)).toBe('cooling')
    await fail(two, of('b', 'three'))
    expect(stateIn(two, of('c', 'good'))).toBe('cooling')
    await expect.poll(() => stateIn(one, of('c', 'good'))).toBe('cooling')
  })

  test('is added up when both write at the same time', async () => {
    const failures = ['a', 'b', 'c', 'd'].flatMap((business, at) =>
      ['one', 'two'].map((prompt) => fail(at % 2 === 0 ? one : two, of(business, prompt))),
    )
    await Promise.all(failures)
    for (const health of [one, two]) await expect.poll(() => stateIn(health, of('e', 'good'))).toBe('cooling')
  })
})

test('the probes of a candidate are claimed together over both processes, by one of many calls', async ({
  database,
}) => {
  const refs = [
    { subject: 'model', id },
    { subject: 'key', id },
  ] as const
  for (const { subject } of refs) one.failed(subject, id, cool, { isProbe: false })
  await one.settled()
  await expect.poll(() => two.stateOf('key', id)?.state).toBe('cooling')
  const makeDue = (subject: string) =>
    database.query(
      'UPDATE model_health SET until = clock_timestamp() WHERE subject_id = $1 AND subject = $2',
      [id, subject],
    )
  const isDue = (subject: 'model' | 'key') => () =>
    one.stateOf(subject, id)?.due === true && two.stateOf(subject, id)?.due === true
  await makeDue('model')
  await expect.poll(isDue('model')).toBe(true)
  // the other of the two is not due
  expect(await one.claim(refs, hour)).toBe(false)
  expect(one.stateOf('model', id)).toMatchObject({ state: 'cooling', due: true })
  await makeDue('key')
  await expect.poll(isDue('key')).toBe(true)
  const claims = Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? one : two).claim(refs, hour))
  expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1)
})

// an embedded database in memory cannot be opened a second time
runtimeTest.skipIf(process.env.MASON_TEST_BACKEND !== 'served')(
  'the doctor reads what a vendor said, also with NUL and half a surrogate pair',
  async ({ backend, database, runtime }) => {
    const { k } = await addVendor(runtime, unique('v'), 'http://127.0.0.1:9/v1', {
      ...{ keys: ['k'], models: [unique('m')] },
    })
    await database.query(
      `INSERT INTO model_health (subject, subject_id, state, failures, for_all, seen, last_error)
       VALUES ('key', $1, 'disabled', 1, true, '[]', $2::json)`,
      [k, JSON.stringify({ code: 'model_auth', message: 'no \0 \ud800', at: new Date(0).toISOString() })],
    )
    const findings = await checkRegistry(backend.config, AbortSignal.timeout(120_000), { sources: [] })
    expect(findings.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/^key "k" of .* was refused: no /),
    )
  },
)
