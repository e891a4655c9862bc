// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import { performEffect } from '../../../src/engine/runs/effects.ts'
import { startLeaseRenewal } from '../../../src/engine/runs/leases.ts'
import { waitForModel } from '../../../src/engine/runs/model-outage.ts'
import {
  failPoisonedRun,
  handBackRun,
  leaveToOtherVersion,
  parkRun,
  requeueRun,
} from '../../../src/engine/runs/release.ts'
import { createRunLog } from '../../../src/engine/runs/run-log.ts'
import { settleRun } from '../../../src/engine/runs/settlement.ts'
import { createLiveRun } from '../../../src/graph/live-run.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { newAttemptId } from '../../../src/infra/lib/ids.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import type { EffectRequest } from '../../../src/state/ports/effects.ts'
import type { Log } from '../../../src/state/ports/log.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { emptyState } from '../../../src/state/runtime-state.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import { startFakeModel } from '../../support/fake-model/fake-model.ts'
import { test } from '../../support/integration-test.ts'
import {
  admitRun,
  appendAction,
  claim,
  codeOf,
  count,
  endLease,
  entry,
  mustClaim,
  openWithDatabase,
  rowOf,
  submitTo,
  unavailable,
  until,
} from '../../support/runs.ts'
import { fakeModels } from '../../support/test-runtime.ts'

/** Guards that other guards stand before, and those for two who come at the same moment. */

const isServed = process.env.MASON_TEST_BACKEND === 'served'

test.afterEach(async ({ database }) => {
  for (const table of ['outbox', 'actions', 'sessions', 'idempotency'])
    await database.query(`DELETE FROM ${table}`)
})

const uniqueViolation = '23505'
const start = async (database: Database) => {
  await submitTo(database, unique('b'))
  return mustClaim(database)
}

describe('the table', () => {
  const again = (database: Database, change: string) =>
    codeOf(
      database.query(
        `INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
         SELECT tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch FROM
           (SELECT tenant, session_id, run_id, turn, epoch, body, patch, ${change} FROM actions LIMIT 1) copied`,
      ),
    )

  test('of actions refuses a second row of one attempt', async ({ database }) => {
    await appendAction(database, await start(database), entry(1))
    expect(await again(database, 'seq + 1000 AS seq, attempt_id')).toBe(uniqueViolation)
  })

  test('of actions refuses a second row of one id', async ({ database }) => {
    await appendAction(database, await start(database), entry(1))
    expect(await again(database, `seq, attempt_id || '-again' AS attempt_id`)).toBe(uniqueViolation)
  })

  test('of runs refuses a second run of one turn', async ({ database }) => {
    const run = await start(database)
    const second = database.query(
      `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
       SELECT tenant, run_id || '-again', session_id, turn, 'queued', expires_at FROM runs WHERE run_id = $1`,
      [run.run_id],
    )
    expect(await codeOf(second)).toBe(uniqueViolation)
  })
})

describe('the end of a run', () => {
  test('is refused at another id than the next', async ({ database }) => {
    const run = await start(database)
    const end = {
      ...entry(2),
      outcome: { status: 'completed', reason: 'answered' } as const,
      result: { answer: null, output_structure: [], error: null },
    }
    expect(await codeOf(appendAction(database, run, end))).toBe('lease_lost')
    expect(await count(database, 'actions WHERE run_id = $1', [run.run_id])).toBe(0)
  })
})

describe('a heartbeat', () => {
  test('whose answer is late does not make the lease look younger than it is', async ({ database }) => {
    const leaseMs = 600
    const run = await start(database)
    let now = 0
    const clock: Clock = { now: () => new Date(now), monotonicMs: () => now, sleep: async () => {} }
    const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
    const answer = deferred<void>()
    let renewals = 0
    const slow: Sql = {
      async query<Row>(text: string, values?: readonly unknown[]) {
        if (!text.includes('UPDATE runs')) return { rows: [] }
        if (++renewals > 1) return new Promise<never>(() => {})
        const done = await database.query<Row>(text, values)
        await answer.promise
        return done
      },
    }
    const leases = startLeaseRenewal({ sql: slow, clock, log: silent, workerId: 'late', leaseMs })
    let lost = false
    leases.hold(run, now, {
      onLost() {
        lost = true
      },
      onCancel() {},
    })
    await until('the renewal', () => renewals === 1)
    now = leaseMs * 0.7
    answer.resolve()
    // the next renewal, which hangs, comes after the answer to the first
    await until('the answer', () => {
      now += 1
      return renewals > 1
    })
    now = leaseMs * 0.85
    await until('the self-fence', () => lost)
    await leases.stop()
  })
})

describe('a worker', () => {
  test('that has lost its run lets go of the model call it waits for', async ({ backend }) => {
    await using model = await startFakeModel()
    model.script({ planner: [{ hold: true, text: 'this is not read' }] })
    const opened = await openWithDatabase(backend, {
      ...{ models: fakeModels(model.baseUrl), concurrency: 1, leaseMs: 3000 },
    })
    const { run } = await opened.runtime.of(unique('b')).submit({ prompt: 'x', user_id: 'u1' })
    await until('the model call', () => model.held() === 1 && model.open() === 1)
    // as another's claim would, before this worker could take it again itself
    await opened.database.query(
      `UPDATE runs SET epoch = epoch + 1, lease_until = clock_timestamp() + interval '1 hour' WHERE run_id = $1`,
      [run.id],
    )
    await until('the end of the model call', () => model.open() === 0)
    await opened.runtime.close()
  })

  test('that has handed its run back neither writes an intent nor sends', async ({ database }) => {
    const run = await start(database)
    const { sent, request } = provider()
    await handBackRun(database, run, 1)
    expect(await codeOf(act(database, run, request))).toBe('lease_lost')
    expect(await count(database, 'effects WHERE run_id = $1', [run.run_id])).toBe(0)
    expect(sent).toEqual([])
  })
})

describe('a worker that has lost its run', () => {
  test('cannot let it wait, queue it, hand it back or give it up', async ({ database }) => {
    const lost = await start(database)
    await endLease(database, lost.run_id)
    const now = await mustClaim(database, 'another')
    await appendAction(database, now, entry(1))
    const before = await rowOf(database, lost.run_id)
    const ask = { question: 'Well?', schema: {}, options: [], expires_in_ms: 1000 }
    const failed = { status: 'failed', reason: 'x', error: { code: 'x', message: 'x' } } as const
    const outage = { node: 'planner', code: 'model_unavailable', message: 'down', waitMs: 0 }
    expect(await parkRun(database, lost, [{ question: ask, call: { plan_seq: 1, index: 0 } }], 1)).toBeNull()
    expect(await requeueRun(database, lost, new Date().toISOString(), 1)).toBe(false)
    expect(await waitForModel(database, lost, outage, 5000, 1)).toBe(false)
    expect(await handBackRun(database, lost, 1)).toBe(false)
    expect(await leaveToOtherVersion(database, lost, 1)).toBe(false)
    expect(await failPoisonedRun(database, lost, failed)).toBeNull()
    expect(await rowOf(database, lost.run_id)).toEqual(before)
  })
})

test('a run that is to be cancelled is neither queued again nor left waiting for a model', async ({
  database,
}) => {
  const run = await start(database)
  await database.query('UPDATE runs SET cancel_requested_at = clock_timestamp() WHERE run_id = $1', [
    run.run_id,
  ])
  const before = await rowOf(database, run.run_id)
  const outage = { node: 'planner', code: 'model_unavailable', message: 'down', waitMs: 0 }
  expect(await requeueRun(database, run, new Date().toISOString(), 1)).toBe(false)
  expect(await waitForModel(database, run, outage, 5000, 1)).toBe(false)
  expect(await rowOf(database, run.run_id)).toEqual(before)
})

describe('a run that its worker does not know how to go on with', () => {
  const begin = async (database: Database, lastActionAt: string) => {
    const run = await start(database)
    await database.query(
      `INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, created_at, body, patch)
       VALUES ($1, $2, 1, $3, 1, 1, $4, clock_timestamp() - $5::interval, '{}', '{}')`,
      [run.tenant, run.session_id, run.run_id, newAttemptId(), lastActionAt],
    )
    await database.query(
      `UPDATE runs SET next_seq = 2, stalls = 3, run_at = run_at - interval '1 day' WHERE run_id = $1`,
      [run.run_id],
    )
    return { run, log: createRunLog(database, run) }
  }

  test('is left to other workers for a moment: none takes it at once, and it does not count towards poison', async ({
    database,
  }) => {
    const { run, log } = await begin(database, '10 minutes')
    expect(await log.passToNewerWorker(7)).toBe(true)
    expect(await rowOf(database, run.run_id)).toMatchObject({ status: 'queued', stalls: 2, worked_ms: 7 })
    expect(await claim(database)).toBeNull()
    expect(await count(database, 'outbox WHERE run_id = $1', [run.run_id])).toBe(1)
    await endLease(database, run.run_id)
    expect(await mustClaim(database)).toMatchObject({ run_id: run.run_id, next_seq: 2 })
    expect(await codeOf(log.passToNewerWorker(7))).toBe('lease_lost')
  })

  test('is not left to others for ever, but waiting for a person does not count', async ({ database }) => {
    const { run, log } = await begin(database, '1 hour')
    expect(await log.passToNewerWorker(7)).toBe(false)
    expect((await rowOf(database, run.run_id)).status).toBe('running')
    await database.query(
      `INSERT INTO input_requests (tenant, request_id, run_id, plan_seq, call_index, question, schema, options, expires_at, answered_at)
       VALUES ($1, 'inp', $2, 1, 0, '""', '{}', '[]', clock_timestamp(), clock_timestamp())`,
      [run.tenant, run.run_id],
    )
    expect(await log.passToNewerWorker(7)).toBe(true)
  })

  test('is left to others for as long after the last of its waits has ended', async ({ database }) => {
    const { run, log } = await begin(database, '1 day')
    await log.startWaits({ plan_seq: 1, index: 0 }, 0, [{ kind: 'job', refId: unique('job') }])
    const endedAt = (before: string) =>
      database.query(
        `UPDATE waits SET outcome = '{}', done_at = clock_timestamp() - $2::interval WHERE run_id = $1`,
        [run.run_id, before],
      )
    expect(await log.passToNewerWorker(7)).toBe(false)
    await endedAt('16 minutes')
    expect(await log.passToNewerWorker(7)).toBe(false)
    await endedAt('14 minutes')
    expect(await log.passToNewerWorker(7)).toBe(true)
  })

  test('is not left to others once it is to be cancelled', async ({ database }) => {
    const { run, log } = await begin(database, '1 minute')
    await database.query(
      `UPDATE runs SET cancel_requested_at = clock_timestamp(), cancel_reason = '"enough"' WHERE run_id = $1`,
      [run.run_id],
    )
    await expect(log.passToNewerWorker(7)).rejects.toMatchObject({ code: 'cancelled', message: 'enough' })
  })
})

describe('a live run', () => {
  test('holds no action, and starts no next step, before it is committed', async ({ database }) => {
    const claimed = await start(database)
    let refuse = (_: unknown): void => {}
    const committed = new Promise<void>((_, reject) => {
      refuse = reject
    })
    const log = { ...createRunLog(database, claimed), append: () => committed }
    const events = { onAction() {}, onText() {} }
    const run = createLiveRun(
      { ...claimed, business_id: claimed.tenant, state: emptyState },
      { log, clock: systemClock, newId: newAttemptId, events },
    )
    let goesOn = false
    const appending = run
      .append(run.openVisit(), 'planner', { summary: 'decides', next: [] }, {}, null)
      .finally(() => {
        goesOn = true
      })
    appending.catch(() => {})
    await new Promise((resolve) => setImmediate(resolve))
    expect({ goesOn, actions: run.actions.length }).toEqual({ goesOn: false, actions: 0 })
    refuse(unavailable())
    expect(await codeOf(appending)).toBe('database_unavailable')
    expect(run.actions).toEqual([])
  })
})

describe('settling', () => {
  test('leaves alone a run that is at work, and one that may still wait', async ({ database }) => {
    const failed = { status: 'failed', reason: 'x', error: { code: 'x', message: 'x' } } as const
    const expired = { onlyExpired: true }
    const tenant = unique('b')
    const waiting = await submitTo(database, tenant)
    const settle = (options?: typeof expired) =>
      database.transaction((sql) => settleRun(sql, tenant, waiting.id, failed, options))
    expect(await settle(expired)).toBeNull()
    await appendAction(database, await mustClaim(database), entry(1))
    expect(await settle()).toBeNull()
    expect((await rowOf(database, waiting.id)).status).toBe('running')
  })
})

const provider = () => {
  const sent: string[] = []
  const request: EffectRequest = {
    ...{ class: 'keyed', windowMs: 60_000, request: 'pay 5' },
    async send(_, key) {
      sent.push(key)
      return 'receipt'
    },
  }
  return { sent, request }
}
const act = (database: Database, run: Awaited<ReturnType<typeof start>>, request: EffectRequest) =>
  performEffect(database, run, { plan_seq: 3, index: 0 }, request, new AbortController().signal)

/** Whether a session of this database waits for another one. */
const someoneWaits = (database: Database) =>
  count(
    database,
    `pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()`,
  )

// one session serves everybody on the embedded database: there is no same moment
describe.runIf(isServed)('two at the same moment', () => {
  test('a side effect at the moment of a take-over waits for it and is refused', async ({ database }) => {
    const run = await start(database)
    const { sent, request } = provider()
    let acted = Promise.resolve('')
    await database.transaction(async (sql) => {
      await sql.query('UPDATE runs SET epoch = epoch + 1 WHERE run_id = $1', [run.run_id])
      acted = codeOf(act(database, run, request))
      await until('the wait', async () => sent.length > 0 || (await someoneWaits(database)))
    })
    expect(await acted).toBe('lease_lost')
    expect(sent).toEqual([])
  })

  test('the second of two requests with one key waits for the first and is given its run', async ({
    database,
  }) => {
    const business = unique('b')
    await submitTo(database, business)
    const submit = (on: Database) =>
      admitRun(on, business, { prompt: 'x', user_id: 'u1' }, { route: 'runs', key: 'k' })
    let isAnswered = false
    let second: ReturnType<typeof submit> | null = null
    const first = await database.transaction(async (sql) => {
      const admitted = await submit({ ...database, asBusiness: (_, work) => work(sql) })
      second = submit(database).finally(() => {
        isAnswered = true
      })
      second.catch(() => {})
      await until('the wait', async () => isAnswered || (await someoneWaits(database)))
      return admitted
    })
    expect(await second).toEqual({ run: first.run, replayed: true })
  })
})
