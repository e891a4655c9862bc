// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import type { RunClaim } from '../../../src/engine/runs/claim.ts'
import { createRetryingSql, startLeaseRenewal } from '../../../src/engine/runs/leases.ts'
import { handBackRun } from '../../../src/engine/runs/release.ts'
import { createRunLog } from '../../../src/engine/runs/run-log.ts'
import { readActionRows } from '../../../src/engine/runs/run-queries.ts'
import { createLiveRun, type LiveRun } from '../../../src/graph/live-run.ts'
import type { Database, TransactionalSql } from '../../../src/infra/database/database.ts'
import { newAttemptId } from '../../../src/infra/lib/ids.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { foldActions } from '../../../src/state/fold.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { emptyState } from '../../../src/state/runtime-state.ts'
import { test } from '../../support/integration-test.ts'
import {
  appendAction,
  codeOf,
  count,
  endLease,
  entry,
  mustClaim,
  rowOf,
  submitTo,
  unavailable,
} from '../../support/runs.ts'
import { isSaidByServers } from '../../support/tier.ts'

const start = async (database: Database): Promise<RunClaim> => {
  const { id } = await submitTo(database, 'a')
  const claimed = await mustClaim(database)
  expect(claimed.run_id).toBe(id)
  return claimed
}
const actionsOf = (database: Database, run: RunClaim) =>
  count(database, 'actions WHERE run_id = $1', [run.run_id])
const held = () => ({ signal: new AbortController().signal, check() {} })
const result = { answer: 'x', output_structure: [], error: null }
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

/** A database that fails in the given way at the given appends, counted from 1. */
const failing = (sql: Sql, at: number[], how: 'before' | 'after'): Sql => {
  let appends = 0
  return {
    async query<Row>(text: string, values?: readonly unknown[]) {
      const fails = text.includes('INSERT INTO actions') && at.includes(++appends)
      if (fails && how === 'before') throw unavailable()
      const done = await sql.query<Row>(text, values)
      if (fails) throw unavailable()
      return done
    },
  }
}

describe('an append', () => {
  test('advances the run: next id, tokens, working time, and no stall', async ({ database }) => {
    const run = await start(database)
    await appendAction(database, run, entry(1, { usage, worked_ms: 12.4 }))
    await appendAction(database, run, entry(2, { usage, worked_ms: 30 }))
    expect(await rowOf(database, run.run_id)).toMatchObject({
      next_seq: 3,
      stalls: 0,
      total_tokens: 10,
      worked_ms: 30,
    })
  })

  test('is refused under another epoch, at another id, and when the run is not at work', async ({
    database,
  }) => {
    const run = await start(database)
    expect(await codeOf(appendAction(database, { ...run, epoch: 0 }, entry(1)))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, { ...run, epoch: 2 }, entry(1)))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, { ...run, tenant: 'b' }, entry(1)))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, run, entry(2)))).toBe('lease_lost')
    await appendAction(database, run, entry(1))
    expect(await codeOf(appendAction(database, run, entry(1)))).toBe('lease_lost')
    await handBackRun(database, run, 1)
    expect(await codeOf(appendAction(database, run, entry(2)))).toBe('lease_lost')
    expect(await actionsOf(database, run)).toBe(1)
    await mustClaim(database)
  })

  test('sent twice counts once, also its tokens', async ({ database }) => {
    const run = await start(database)
    const once = entry(1, { usage })
    await appendAction(database, run, once)
    await appendAction(database, run, once)
    expect(await actionsOf(database, run)).toBe(1)
    expect(await rowOf(database, run.run_id)).toMatchObject({ next_seq: 2, total_tokens: 5 })
  })

  test.for(['before', 'after'] as const)(
    'goes through when the connection is lost %s the statement was done',
    async (how, { database }) => {
      const run = await start(database)
      const steady = createRetryingSql(
        { ...database, ...failing(database, [1, 2, 4], how) },
        systemClock,
        held(),
      )
      await appendAction(steady, run, entry(1, { usage }))
      await appendAction(steady, run, entry(2, { usage }))
      await appendAction(steady, run, {
        ...entry(3),
        outcome: { status: 'completed', reason: 'answered' },
        result,
      })
      expect(await actionsOf(database, run)).toBe(3)
      expect(await rowOf(database, run.run_id)).toMatchObject({
        status: 'completed',
        next_seq: 4,
        total_tokens: 10,
      })
    },
  )

  test('whose connection is lost until the lease is gives the run up, and so does one that hangs', async ({
    database,
  }) => {
    const run = await start(database)
    for (const query of [() => Promise.reject(unavailable()), () => new Promise<never>(() => {})]) {
      const lease = new AbortController()
      const appended = codeOf(
        appendAction(
          createRetryingSql({ ...database, query }, systemClock, { signal: lease.signal, check() {} }),
          run,
          entry(1),
        ),
      )
      lease.abort()
      expect(await appended).toBe('lease_lost')
    }
    expect(await actionsOf(database, run)).toBe(0)
  })

  test('whose answer comes when the lease is too old to act on gives the run up', async ({ database }) => {
    const run = await start(database)
    let now = 0
    const clock = { ...systemClock, now: () => new Date(now), monotonicMs: () => now }
    const leases = startLeaseRenewal({
      sql: database,
      clock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      workerId: 'frozen',
      leaseMs: 1000,
    })
    const { check, release } = leases.hold(run, 0, { onLost() {}, onCancel() {} })
    const steady = createRetryingSql(database, clock, { signal: held().signal, check })
    await appendAction(steady, run, entry(1))
    release()
    now = 801
    expect(await codeOf(appendAction(steady, run, entry(2)))).toBe('lease_lost')
    await leases.stop()
  })

  test('that commits after its lease expired is refused once another worker has the run', async ({
    database,
  }) => {
    const frozen = await start(database)
    await endLease(database, frozen.run_id)
    const next = await mustClaim(database, 'another')
    await appendAction(database, next, entry(1))
    const finish = { ...entry(2), outcome: { status: 'completed', reason: 'answered' } as const, result }
    expect(await codeOf(appendAction(database, frozen, finish))).toBe('lease_lost')
    expect(await codeOf(appendAction(database, frozen, entry(2)))).toBe('lease_lost')
    expect(await rowOf(database, next.run_id)).toMatchObject({ status: 'running', next_seq: 2, epoch: 2 })
  })
})

describe('the end of a run', () => {
  test('sets status, result and time, releases the lease and wakes the next run of its session', async ({
    database,
  }) => {
    const { session_id } = await submitTo(database, 'a')
    const next = await submitTo(database, 'a', { session_id })
    const run = await mustClaim(database)
    await database.query('DELETE FROM outbox')
    await appendAction(database, run, {
      ...entry(1),
      outcome: { status: 'completed', reason: 'steps' },
      result,
    })
    const { rows } = await database.query(
      `SELECT r.status, r.finish_reason, r.ended_at IS NOT NULL AS ended, r.lease_owner, r.lease_until, o.result,
         (SELECT json_agg(run_id) FROM outbox) AS wake_ups FROM runs r JOIN run_results o USING (tenant, run_id) WHERE run_id = $1`,
      [run.run_id],
    )
    expect(rows).toEqual([
      {
        status: 'completed',
        finish_reason: 'steps',
        ended: true,
        lease_owner: null,
        lease_until: null,
        result,
        wake_ups: [next.id],
      },
    ])
    expect((await mustClaim(database)).run_id).toBe(next.id)
  })
})

/** A run in this process, as a worker holds it. */
const live = (claimed: RunClaim, sql: TransactionalSql): LiveRun =>
  createLiveRun(
    { ...claimed, business_id: claimed.tenant, state: emptyState },
    {
      log: createRunLog(sql, claimed),
      clock: systemClock,
      newId: newAttemptId,
      events: { onAction() {}, onText() {} },
    },
  )

describe('a live run', () => {
  test('takes the appends of parallel branches in one order, without a gap, and holds what is stored', async ({
    database,
  }) => {
    const claimed = await start(database)
    const run = live(claimed, database)
    const states = await Promise.all(
      Array.from({ length: 25 }, (_, at) =>
        run.append(run.openVisit(), 'load-session', { summary: `${at}`, usage, next: [] }, {}, null),
      ),
    )
    expect(states.map((state) => state.action_history[0]?.length)).toEqual(
      Array.from({ length: 25 }, (_, at) => at + 1),
    )
    const stored = foldActions(await readActionRows(database, 'a', claimed.session_id, 1))
    expect(stored).toEqual(run.state)
    expect(stored.action_history[0]?.map(({ id, summary }) => [id, summary])).toEqual(
      Array.from({ length: 25 }, (_, at) => [at + 1, `${at}`]),
    )
    expect((await rowOf(database, claimed.run_id)).total_tokens).toBe(125)
  })

  test('loses none when one in the middle fails for good', async ({ database }) => {
    const claimed = await start(database)
    const run = live(claimed, database)
    const write = (summary: unknown) =>
      run.append(run.openVisit(), 'load-session', { summary: summary as string, next: [] }, {}, null)
    const codes = await Promise.all([write('one'), write(42), write('three')].map(codeOf))
    expect(codes).toEqual(['no error', 'node_failed', 'no error'])
    expect(run.state.action_history[0]?.map((action) => action.id)).toEqual([1, 2])
  })

  test('moves results over 32 KB out of the row', async ({ database }) => {
    const claimed = await start(database)
    const run = live(claimed, database)
    const text = 'ü'.repeat(50_000)
    await run.append(
      run.openVisit(),
      'load-session',
      { summary: 'big', result: { text, call: { index: 0, id: 'c' } }, next: [] },
      {},
      null,
    )
    const { rows } = await database.query<{ bytes: number; blobs: number }>(
      `SELECT length(body::text) AS bytes, (SELECT length(bytes) FROM blobs) AS blobs FROM actions WHERE run_id = $1`,
      [claimed.run_id],
    )
    expect(rows[0]?.bytes).toBeLessThan(3000)
    expect(rows[0]?.blobs).toBeGreaterThan(100_000)
    expect(run.state.action_history[0]?.[0]?.result).toMatchObject({
      call: { index: 0, id: 'c' },
      bytes: rows[0]?.blobs,
    })
  })

  test.skipIf(isSaidByServers)(
    'pays one statement of the same size for each action, from the 10th to the 1000th',
    async ({ database }) => {
      const claimed = await start(database)
      const sent: number[] = []
      const counting: Sql = {
        query(text, values = []) {
          sent.push(text.length + JSON.stringify(values).length)
          return database.query(text, values)
        },
      }
      const run = live(claimed, createRetryingSql({ ...database, ...counting }, systemClock, held()))
      // what it costs in time is measured by the bench (growth)
      for (let at = 1; at <= 1000; at++)
        await run.append(
          run.openVisit(),
          'load-session',
          { summary: 'same', result: { text: 'x'.repeat(500) }, usage, next: [] },
          {},
          null,
        )
      expect(sent).toHaveLength(1000)
      expect(Math.max(...sent) - Math.min(...sent)).toBeLessThan(30)
    },
  )
})
