// backends: both
// asserts: invariants

import { describe, expect, onTestFinished } from 'vitest'
import type { RunClaim } from '../../../src/engine/runs/claim.ts'
import { answerInput } from '../../../src/engine/runs/input-answers.ts'
import { createRunLog } from '../../../src/engine/runs/run-log.ts'
import { wakeWaitingRuns } from '../../../src/engine/runs/waits.ts'
import { type Database, queryOne, type TransactionalSql } from '../../../src/infra/database/database.ts'
import type { CallRef, OpenQuestion } from '../../../src/state/ports/run-log.ts'
import type { WaitRequest } from '../../../src/state/ports/waits.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import { test } from '../../support/integration-test.ts'
import {
  claim,
  codeOf,
  count,
  endLease,
  mustClaim,
  rowOf,
  submitTo,
  untilBlocked,
} from '../../support/runs.ts'

/** Parking and what ends a wait, statement by statement: here no worker but the test has the runs. */

const isServed = process.env.MASON_TEST_BACKEND === 'served'
const call: CallRef = { plan_seq: 1, index: 0 }
const question = { question: 'Well?', schema: {}, options: [], expires_in_ms: 60_000 }

const endWait = async (database: Pick<Database, 'query'>, tenant: string, ref: string, kind = 'job') =>
  (
    await queryOne<{ ended: number }>(database, `SELECT end_wait($1, $2, $3, '{"status":"done"}') AS ended`, [
      tenant,
      kind,
      ref,
    ])
  )?.ended

/** A claimed run of a business of its own, whose first call waits. */
const begin = async (database: TransactionalSql & Database, request: Partial<WaitRequest> = {}) => {
  const tenant = unique('b')
  await submitTo(database, tenant)
  const run = await mustClaim(database)
  const ref = unique('ref')
  const log = createRunLog(database, run)
  await log.startWaits(call, 0, [{ kind: 'job', refId: ref, ...request }])
  const status = async () => (await rowOf(database, run.run_id)).status
  return { tenant, run, ref, log, status, end: () => endWait(database, tenant, ref) }
}

/** Parks a run in a transaction that the test commits. */
const parkSlowly = async (database: Database, run: RunClaim, questions: readonly OpenQuestion[]) => {
  const [parked, committed] = [deferred(), deferred()]
  onTestFinished(() => committed.resolve())
  const slow: TransactionalSql = {
    query: database.query,
    transaction: (work) =>
      database.transaction(async (sql) => {
        const result = await work(sql)
        parked.resolve()
        await committed.promise
        return result
      }),
  }
  const parking = createRunLog(slow, run).park(questions, 1)
  await parked.promise
  return { parking, committed }
}

describe('a wait that ends as its run is parked', () => {
  test.runIf(isServed)(
    'is seen by parking that comes as it is being ended',
    async ({ database, elsewhere }) => {
      const { tenant, ref, log, status, run } = await begin(database)
      const [ended, committed] = [deferred(), deferred()]
      onTestFinished(() => committed.resolve())
      const ending = elsewhere.transaction(async (sql) => {
        expect(await endWait(sql as Database, tenant, ref)).toBe(1)
        ended.resolve()
        await committed.promise
      })
      await ended.promise
      const parking = log.park([], 1)
      await untilBlocked(database, parking)
      committed.resolve()
      await ending
      expect(await parking).toBe('requeued')
      expect(await status()).toBe('queued')
      expect(await count(database, 'outbox WHERE run_id = $1', [run.run_id])).toBe(1)
      expect((await mustClaim(database)).run_id).toBe(run.run_id)
    },
  )

  test.runIf(isServed)('wakes a run that is being parked', async ({ database, elsewhere }) => {
    const { tenant, ref, run, status } = await begin(database)
    const { parking, committed } = await parkSlowly(elsewhere, run, [])
    const ending = endWait(database, tenant, ref)
    await untilBlocked(elsewhere, ending)
    committed.resolve()
    expect(await parking).toBe('parked')
    expect(await ending).toBe(1)
    expect(await status()).toBe('queued')
    expect((await mustClaim(database)).run_id).toBe(run.run_id)
  })

  test('wakes it once, in whatever order both come, and an end that a claim has read wakes nothing', async ({
    database,
  }) => {
    for (let nth = 0; nth < 10; nth++) {
      const { run, ref, log, end } = await begin(database)
      const work = [() => log.park([], 1), end]
      if (nth % 2 === 1) work.reverse()
      await Promise.all(work.map((one) => one()))
      const again = await mustClaim(database)
      expect(again.run_id).toBe(run.run_id)
      const next = createRunLog(database, again)
      const [state] = await next.startWaits(call, 0, [{ kind: 'job', refId: ref }])
      expect(state?.outcome).toEqual({ status: 'done' })
      await next.startWaits({ plan_seq: 1, index: 1 }, 0, [{ kind: 'job', refId: 'another' }])
      expect(await next.park([], 1)).toBe('parked')
      expect(await claim(database)).toBeNull()
      expect(await wakeWaitingRuns(database)).toBe(0)
    }
  })
})

describe('the reconciler', () => {
  test('wakes a run whose wait has ended unseen', async ({ database }) => {
    const { run, log, status } = await begin(database)
    await log.park([], 1)
    await database.query(
      `UPDATE waits SET done_at = clock_timestamp(), outcome = '{"status":"done"}' WHERE run_id = $1`,
      [run.run_id],
    )
    expect(await wakeWaitingRuns(database)).toBe(1)
    expect(await status()).toBe('queued')
    expect(await wakeWaitingRuns(database)).toBe(0)
    expect((await mustClaim(database)).run_id).toBe(run.run_id)
  })

  test('ends what is over its time as expired, and wakes for a poll without ending it', async ({
    database,
  }) => {
    const over = await begin(database, { expiresInMs: 0 })
    expect(await over.log.park([], 1)).toBe('parked')
    expect(await wakeWaitingRuns(database)).toBe(1)
    const late = createRunLog(database, await mustClaim(database))
    expect(await late.startWaits(call, 0, [{ kind: 'job', refId: over.ref }])).toEqual([
      { outcome: { status: 'expired' }, is_poll_due: false },
    ])
    await late.requeue(new Date(Date.now() + 3_600_000).toISOString(), 1)
    const job = await begin(database, { poll: async () => ({ againInMs: 1 }) })
    await job.log.delayPoll({ ...call, part: 0 }, 3_600_000)
    await job.log.park([], 1)
    expect(await wakeWaitingRuns(database)).toBe(0)
    await database.query('UPDATE waits SET poll_at = clock_timestamp() WHERE run_id = $1', [job.run.run_id])
    expect(await wakeWaitingRuns(database)).toBe(1)
    const again = await mustClaim(database)
    const poll = async () => ({ againInMs: 1 })
    expect(
      await createRunLog(database, again).startWaits(call, 0, [{ kind: 'job', refId: job.ref, poll }]),
    ).toEqual([{ outcome: null, is_poll_due: true }])
  })
})

describe('a question beside a wait', () => {
  const asking = [{ question, call: { plan_seq: 1, index: 1 } }]
  const idOf = async (database: Database, runId: string): Promise<string> =>
    (
      await queryOne<{ id: string }>(
        database,
        'SELECT request_id AS id FROM input_requests WHERE run_id = $1',
        [runId],
      )
    )?.id ?? ''

  test('stays open as the wait ends, and is answered while the run is at work', async ({ database }) => {
    const { tenant, run, log, end, status } = await begin(database)
    expect(await log.park(asking, 1)).toBe('parked')
    expect(await status()).toBe('input_required')
    expect(await end()).toBe(1)
    expect(await status()).toBe('queued')
    const again = await mustClaim(database)
    expect(again.run_id).toBe(run.run_id)
    await answerInput(database, tenant, run.run_id, await idOf(database, run.run_id), 'yes')
    expect(await status()).toBe('running')
    expect(
      await codeOf(answerInput(database, tenant, run.run_id, await idOf(database, run.run_id), 'no')),
    ).toBe('input_answered')
    expect(await createRunLog(database, again).park(asking, 1)).toBe('requeued')
    expect((await mustClaim(database)).run_id).toBe(run.run_id)
  })

  test.runIf(isServed)(
    'that is answered as its run is being parked again wakes it',
    async ({ database, elsewhere }) => {
      const { tenant, run, log, end, status } = await begin(database)
      await log.park(asking, 1)
      await end()
      const { parking, committed } = await parkSlowly(elsewhere, await mustClaim(database), asking)
      const answering = answerInput(database, tenant, run.run_id, await idOf(database, run.run_id), 'yes')
      await untilBlocked(elsewhere, answering)
      committed.resolve()
      expect(await parking).toBe('parked')
      await answering
      expect(await status()).toBe('queued')
      expect((await mustClaim(database)).run_id).toBe(run.run_id)
    },
  )
})

describe('starting', () => {
  test('happens once, with its wait or not at all, and only for who has the run', async ({ database }) => {
    const { tenant, run, log } = await begin(database)
    const second = { plan_seq: 1, index: 1 }
    const start = (sql: Pick<Database, 'query'>): Promise<void> =>
      sql
        .query(`INSERT INTO inbox (tenant, source, message_id) VALUES ($1, 'waits', 'm')`, [tenant])
        .then(() => {})
    const broken = { kind: 'run' as const, refId: 'r2', start: () => Promise.reject(new Error('no')) }
    const request = { kind: 'run' as const, refId: 'r1', start }
    await expect(log.startWaits(second, 0, [request, broken])).rejects.toThrow('no')
    const started = () => count(database, `inbox WHERE tenant = $1`, [tenant])
    expect([await started(), await count(database, 'waits WHERE run_id = $1', [run.run_id])]).toEqual([0, 1])
    await log.startWaits(second, 0, [request])
    await log.startWaits(second, 0, [request])
    expect(await started()).toBe(1)
    const lost = createRunLog(database, { ...run, epoch: 0 })
    expect(await codeOf(lost.startWaits(second, 1, [broken]))).toBe('lease_lost')
    await database.query('UPDATE runs SET cancel_requested_at = now() WHERE run_id = $1', [run.run_id])
    expect(await codeOf(log.startWaits(second, 1, [broken]))).toBe('cancelled')
  })

  test.runIf(isServed)('lets no other claim come before it', async ({ database, elsewhere }) => {
    const { run, log } = await begin(database)
    await endLease(database, run.run_id)
    const [begun, committed] = [deferred(), deferred()]
    onTestFinished(() => committed.resolve())
    const start = async () => {
      begun.resolve()
      await committed.promise
    }
    const starting = log.startWaits({ plan_seq: 1, index: 1 }, 0, [{ kind: 'job', refId: 'j', start }])
    await begun.promise
    expect(await claim(elsewhere)).toBeNull()
    committed.resolve()
    await starting
    expect((await mustClaim(elsewhere)).run_id).toBe(run.run_id)
  })

  test('never lets a payment expire', async ({ database }) => {
    expect(await codeOf(begin(database, { kind: 'payment', expiresInMs: 1 }))).toBe('23514')
  })
})

test('only a worker across businesses ends a wait, and an API process does not', async ({ database }) => {
  const ended = database.asBusiness('default', (sql) => endWait(sql as Database, 'default', 'x'))
  expect(await codeOf(ended)).toBe('42501')
})
