// backends: both

import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'vitest'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import { countStatements, type StatementNames } from '../../support/counted-database.ts'
import { test } from '../../support/integration-test.ts'
import { hashOnly, learnAll } from '../../support/memory.ts'
import { noOpModels } from '../../support/no-op-models.ts'
import { openWithDatabase, until } from '../../support/runs.ts'

/** What each statement is called here, by a text that it alone has. */
const names: StatementNames = [
  // on timers of the system, which go on while no time passes
  [null, 'UPDATE runs r SET lease_until'],
  [null, 'r.status IS NULL AS is_lost'],
  [null, 'INSERT INTO workers'],
  // once a second of the system
  [null, 'SELECT subject FROM budgets'],
  // the leader of the public queue
  [null, 'intake_lease'],
  [null, 'held_jobs'],
  ['admission', 'INSERT INTO sessions AS s'],
  ['claim', 'WITH RECURSIVE open_business'],
  ['append', 'INSERT INTO actions'],
  ['profile', 'SELECT profile FROM users'],
  ['spaces of memories', 'WITH RECURSIVE spaces'],
  ['whether anything is remembered', 'superseded_by IS NULL) AS memories'],
  ['memories by their vectors', 'FROM memory_vectors'],
  ['memories by their words', 'FROM memory_words'],
  ['turns by their words', 'FROM turn_words'],
  ['preferences', "kind = 'preference'"],
  ['agents', 'FROM remote_agents'],
  ['payment providers', 'list_payment_providers'],
  ['allowed hosts', 'SELECT http_hosts'],
  ['open mandates', 'm.mandate_id AS id'],
  ['runs to learn from', 'SELECT q.*, r.* FROM (SELECT tenant, run_id, tries'],
  ['claim of learning', 'UPDATE distillations d SET tries'],
  ['lock of a user', 'pg_advisory_xact_lock(hashtextextended'],
  ['hold of sessions', 'ORDER BY s.session_id FOR KEY SHARE'],
  ['end of learning', 'DELETE FROM distillations'],
  ['actions that recalled', 'a.seq < r.first_seq'],
  ['whether it is forgotten', "SELECT memory_id AS id, '' AS session_id"],
  ['latest turns', 'SELECT session_id, number, last_turn'],
  ['new turns', 'INSERT INTO turns'],
  ['summaries', 'UPDATE sessions s SET summary'],
]

/** No time passes: loops do their work once, and what is cached stays. */
const stoppedClock: Clock = {
  ...systemClock,
  monotonicMs: () => 0,
  sleep: (_ms, signal) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
    }),
}

test('a run of eight actions that recalls something costs so much, and so does learning from it', async ({
  backend,
}) => {
  const counting = countStatements(names)
  const models = noOpModels()
  const { runtime, database } = await openWithDatabase(backend, {
    models,
    clock: stoppedClock,
    wrap: { database: counting.wrap },
    worker: false,
  })
  await runtime.startWorker()
  /** The loops have begun to wait: what they ask follows what was answered at once. */
  const untilQuiet = async () => {
    for (let turns = 0; turns < 50; turns = counting.isQuiet() ? turns + 1 : 0) await nextTurn()
  }
  const api = runtime.of('default')
  const submit = async () => (await api.submit({ prompt: 'hello', user_id: 'u1' })).run
  const learn = () => learnAll({ database, embedder: hashOnly, log: silentLog, modelsFor: () => models })
  await until('the first look for runs', () => counting.counted('claim') > 0)
  await submit()
  await until('the first run', () => counting.counted('append') === 8)
  await until('the claim after it', () => counting.counted('claim') >= 3)
  await learn()
  await untilQuiet()
  counting.take()

  const run = await submit()
  await until('the second run', () => counting.counted('append') === 9)
  await until('the claim after it', () => counting.counted('claim') >= 2)
  await untilQuiet()
  const worked = counting.take()
  expect(await learn()).toBe(1)
  const learned = counting.take()
  expect((await api.run(run.id))?.status).toBe('completed')
  await runtime.close()

  expect(worked).toEqual({
    transactions: 14,
    statements: {
      admission: 1,
      claim: 2,
      append: 9,
      // of turns alone: this user has no memory
      'whether anything is remembered': 1,
      'turns by their words': 1,
    },
  })
  // the runs that are due are read again until there are none
  expect(learned).toEqual({
    transactions: 4,
    statements: {
      'runs to learn from': 2,
      'claim of learning': 1,
      'lock of a user': 1,
      'hold of sessions': 1,
      'end of learning': 1,
      'actions that recalled': 1,
      'whether it is forgotten': 1,
      'latest turns': 1,
      'new turns': 1,
      summaries: 1,
    },
  })
})
